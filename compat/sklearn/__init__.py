"""Models as estimators of scikit-learn; users import ``gradtape.sklearn``."""
