"""A variational autoencoder: four numbers per digit, and new digits drawn from them."""

import gradtape as gt

gt.random.set_seed(0)
(x, _), _ = gt.datasets.load_digits()
L = gt.layers
encode = L.Sequential([L.Dense(64, activation="relu"), L.Dense(8)])
decode = L.Sequential([L.Dense(64, activation="relu"), L.Dense(64)])
optimizer = gt.training.Adam(0.01)
for batch in gt.data.Dataset.from_tensor_slices(x).shuffle(len(x), seed=0).batch(64).repeat(10):
    with gt.GradientTape() as tape:
        mean, scale = gt.split(encode(batch), 2, axis=-1)
        logits = decode(mean + gt.exp(scale) * gt.random.normal(mean.shape))
        error = gt.nn.sigmoid_cross_entropy_with_logits(labels=batch, logits=logits)
        kl = gt.sum(gt.exp(2 * scale) + mean**2 - 1 - 2 * scale, axis=-1) / 2
        loss = gt.mean(gt.sum(error, axis=-1) + kl)
    variables = encode.trainable_variables + decode.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
digits = gt.nn.sigmoid(decode(gt.random.normal((3, 4))))
print(f"loss {loss.item():.1f}; new digits: {digits.shape}")
assert loss.item() < 32
