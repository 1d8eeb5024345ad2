"""A rare class counts more: weights by class."""

import numpy as np

import gradtape as gt

(x, y), (x_test, y_test) = gt.datasets.load_digits()
is_eight, is_eight_test = (y == 8).astype("int64"), y_test == 8  # one in ten


def found(**weights):
    gt.random.set_seed(0)
    model = gt.layers.Dense(2)
    gt.training.fit(model, (x, is_eight), epochs=10, seed=0, verbose=False, **weights)
    predicted = gt.training.predict(model, x_test).numpy().argmax(axis=1) == 1
    share, right = np.mean(predicted[is_eight_test]), np.mean(predicted == is_eight_test)
    print(f"{weights}: {share:.0%} of the eights are found; {right:.0%} of all are right")
    return share


assert found(class_weight={1: 9.0}) > found() + 0.2
