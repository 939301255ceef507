"""Images."""

import numpy as np

from tests.packages.package_function import PackageFunction

IMAGE = np.random.default_rng(5).uniform(0.1, 0.9, (7, 7))


def _pixels(g, count=6):
    """A function of some pixels of an image in the middle."""

    def f(p):
        image = IMAGE.copy()
        image[3, :count] = p
        return g(image)

    return f, IMAGE[3, :count].copy()


def _gaussian():
    from skimage.filters import gaussian

    return _pixels(lambda image: (gaussian(image, sigma=1.0) ** 2).sum())


def _sobel():
    from skimage.filters import sobel

    return _pixels(lambda image: sobel(image).sum())


def _similarity():
    from skimage.metrics import structural_similarity

    return _pixels(lambda image: structural_similarity(image, IMAGE.T.copy(), data_range=1.0))


def _psnr():
    from skimage.metrics import peak_signal_noise_ratio

    return _pixels(lambda image: peak_signal_noise_ratio(image, IMAGE.T.copy(), data_range=1.0))


def _total_variation():
    from skimage.restoration import denoise_tv_chambolle

    return _pixels(lambda image: denoise_tv_chambolle(image, max_num_iter=5, eps=1e-12)[3, 3])


def _warp():
    from skimage.transform import AffineTransform, warp

    def f(p):
        move = AffineTransform(translation=(p[0], p[1]))
        return (warp(IMAGE, move.inverse, order=1) ** 2).sum()

    return f, np.array([0.3, 0.4])


def _affine():
    from skimage.transform import AffineTransform

    def f(p):
        move = AffineTransform(scale=(p[0], p[1]), rotation=p[2], translation=(1.0, 2.0))
        return move(np.array([[1.0, 2.0], [0.5, -1.0]])).ravel()

    return f, np.array([1.1, 0.9, 0.3])


def _rgb():
    from skimage.color import rgb2lab

    def f(p):
        return rgb2lab(p.reshape(1, 1, 3)).ravel()

    return f, np.array([0.4, 0.3, 0.7])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction("scikit-image", "gaussian filter, energy", _gaussian),
    PackageFunction("scikit-image", "sobel", _sobel),
    PackageFunction("scikit-image", "structural_similarity", _similarity),
    PackageFunction("scikit-image", "peak_signal_noise_ratio", _psnr),
    PackageFunction("scikit-image", "denoise_tv_chambolle", _total_variation),
    PackageFunction(
        "scikit-image",
        "warp, by a translation",
        _warp,
        refused={"*": "MissingRuleError"},
        why="compiled code",
    ),
    PackageFunction("scikit-image", "AffineTransform, by its parameters", _affine),
    PackageFunction(
        "scikit-image",
        "rgb2lab",
        _rgb,
    ),
]
