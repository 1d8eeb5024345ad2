"""Cross-validation: five models, each tested on a fifth that it did not see."""

import numpy as np

import gradtape as gt

gt.random.set_seed(0)
(x, y), _ = gt.datasets.load_digits()
folds = np.array_split(np.random.default_rng(0).permutation(600), 5)
layers = gt.layers
scores = []
for i, held_out in enumerate(folds):
    rest = np.concatenate(folds[:i] + folds[i + 1 :])
    model = layers.Sequential([layers.Dense(32, activation="relu"), layers.Dense(10)])
    data, rate = (x[rest], y[rest]), gt.training.Adam(0.01)
    gt.training.fit(model, data, epochs=6, optimizer=rate, seed=i, verbose=False)
    scores.append(gt.training.evaluate(model, (x[held_out], y[held_out]))["accuracy"])
print(f"accuracy: {np.mean(scores):.1%} ± {np.std(scores):.1%}")
assert min(scores) > 0.85
