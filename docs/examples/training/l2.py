"""Keep the weights small: a penalty on their squares."""

import gradtape as gt

(x, y), test = gt.datasets.load_digits()


def trained(strength):
    gt.random.set_seed(0)
    penalty = gt.layers.regularizers.L2(strength)
    model = gt.layers.Dense(10, kernel_regularizer=penalty)
    gt.training.fit(model, (x, y), epochs=10, seed=0, verbose=False)
    accuracy = gt.training.evaluate(model, test)["accuracy"]
    norm = gt.linalg.norm(model.kernel).item()
    print(f"strength {strength}: norm of the weights {norm:.2f}, accuracy {accuracy:.1%}")
    assert accuracy > 0.8
    return norm


assert trained(0.01) < trained(0.0) * 0.8
