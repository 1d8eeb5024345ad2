"""Stop when the validation loss no longer falls, and go back to the best epoch's weights."""

import gradtape as gt

gt.random.set_seed(0)
(x, y), test = gt.datasets.load_digits()
layers = gt.layers
model = layers.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
stop = gt.training.EarlyStopping(patience=3, restore_best_weights=True)
run = gt.training.fit(
    model,
    (x[:600], y[:600]),
    epochs=100,
    optimizer=gt.training.Adam(0.02),
    validation_split=0.2,
    callbacks=[stop],
    seed=0,
    verbose=False,
)
print(f"stopped after epoch {stop.stopped_epoch + 1}, best was epoch {stop.best_epoch + 1}")
assert len(run.epoch) == stop.best_epoch + 1 + 3
accuracy = gt.training.evaluate(model, test)["accuracy"]
print(f"accuracy: {accuracy:.1%}")
assert accuracy > 0.9
