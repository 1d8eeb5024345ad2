"""Models as scikit-learn estimators; users import ``gradtape.sklearn``."""
