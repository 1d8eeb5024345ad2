"""Write the model to a file whenever the validation accuracy is the best so far."""

import gradtape as gt

gt.random.set_seed(0)
(x, y), test = gt.datasets.load_digits()
layers = gt.layers
model = layers.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
keep = gt.training.ModelCheckpoint("best.h5", monitor="val_accuracy", save_best_only=True)
run = gt.training.fit(
    model,
    (x[:600], y[:600]),
    epochs=8,
    optimizer=gt.training.Adam(0.05),
    validation_data=test,
    callbacks=[keep],
    seed=0,
    verbose=False,
)
best = gt.load("best.h5")
found = gt.training.evaluate(best, test)["accuracy"]
print(f"best of {len(run.epoch)} epochs: {found:.1%}; last: {run.history['val_accuracy'][-1]:.1%}")
assert abs(found - max(run.history["val_accuracy"])) < 1e-6
