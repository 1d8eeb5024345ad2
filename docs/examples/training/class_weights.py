"""A rare class counts more: weights by class in the loss."""

import numpy as np

import gradtape as gt

(x, y), (x_test, y_test) = gt.datasets.load_digits()
is_eight, is_eight_test = (y == 8).astype("int64"), (y_test == 8).astype("int64")  # one in ten


def found(weights):
    def loss(labels, logits):
        each = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return each * gt.take(weights, labels)

    gt.random.set_seed(0)
    model = gt.layers.Dense(2)
    gt.training.fit(model, (x, is_eight), loss=loss, epochs=8, seed=0, verbose=False)
    predicted = gt.training.predict(model, x_test).numpy().argmax(axis=1)
    share = np.mean(predicted[is_eight_test == 1])
    print(f"weights {weights.tolist()}: {share:.0%} of the eights are found")
    return share


assert found(gt.constant([1.0, 9.0])) > found(gt.constant([1.0, 1.0])) + 0.2
