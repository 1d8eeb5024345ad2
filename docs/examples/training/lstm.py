"""A recurrent network: does a sequence of numbers add up to more than zero?"""

import numpy as np

import gradtape as gt

gt.random.set_seed(0)
random = np.random.default_rng(0)
x = random.standard_normal((512, 12, 1)).astype("float32")
y = (x.sum(axis=(1, 2)) > 0).astype("int64")
layers = gt.layers
model = layers.Sequential([layers.LSTM(12), layers.Dense(2)])
gt.training.fit(
    model,
    (x[:384], y[:384]),
    epochs=8,
    optimizer=gt.training.Adam(0.02),
    seed=0,
    verbose=False,
)
accuracy = gt.training.evaluate(model, (x[384:], y[384:]))["accuracy"]
print(f"accuracy on sequences not seen before: {accuracy:.1%}")
assert accuracy > 0.9
