"""Keep the weights small: a penalty on their squares."""

import gradtape as gt

(x, y), test = gt.datasets.load_digits()


def trained(strength):
    gt.random.set_seed(0)
    layer = gt.layers.Dense(10)

    def loss(labels, logits):
        error = gt.training.sparse_categorical_crossentropy_from_logits(labels, logits)
        return error + strength * gt.sum(layer.kernel**2)

    gt.training.fit(layer, (x, y), loss=loss, epochs=10, seed=0, verbose=False)
    accuracy = gt.training.evaluate(layer, test)["accuracy"]
    print(f"strength {strength}: norm {gt.linalg.norm(layer.kernel):.2f}, accuracy {accuracy:.1%}")
    assert accuracy > 0.8
    return float(gt.linalg.norm(layer.kernel))


assert trained(0.01) < trained(0.0) * 0.8
