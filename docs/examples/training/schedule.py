"""Let the learning rate rise, and fall along a cosine."""

import gradtape as gt

gt.random.set_seed(0)
(x, y), test = gt.datasets.load_digits()
epochs, batch = 8, 32
steps = epochs * (len(x) // batch)
rate = gt.training.schedules.CosineDecay(
    0.0, steps, alpha=0.01, warmup_target=0.02, warmup_steps=steps // 10
)
layers = gt.layers
model = layers.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
optimizer = gt.training.Adam(rate)
gt.training.fit(
    model, (x, y), epochs=epochs, batch_size=batch, optimizer=optimizer, seed=0, verbose=False
)
rates = [float(rate(step)) for step in (0, steps // 10, steps // 2, steps)]
print("rates:", ", ".join(f"{r:.4f}" for r in rates))
assert rates[0] < rates[3] < rates[2] < rates[1]
accuracy = gt.training.evaluate(model, test)["accuracy"]
print(f"accuracy: {accuracy:.1%}")
assert accuracy > 0.95
