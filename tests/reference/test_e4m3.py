import ml_dtypes
import numpy as np
from reference.e4m3 import MAGNITUDES, MIDPOINTS, decode, encode

ALL_CODES = np.arange(256, dtype=np.uint8)


def test_every_code_is_worth_what_ml_dtypes_says() -> None:
    theirs = ALL_CODES.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    np.testing.assert_array_equal(decode(ALL_CODES), theirs)


def test_every_code_survives_decode_and_encode() -> None:
    np.testing.assert_array_equal(encode(decode(ALL_CODES[:127]).astype(np.float32)), ALL_CODES[:127])
    np.testing.assert_array_equal(encode(decode(ALL_CODES[128:255]).astype(np.float32)), ALL_CODES[128:255])


def test_midpoints_go_to_the_even_code_and_their_neighbours_to_the_nearest() -> None:
    middle = MIDPOINTS.astype(np.float32)
    codes = np.arange(126)
    np.testing.assert_array_equal(encode(middle), codes + codes % 2)
    np.testing.assert_array_equal(encode(np.nextafter(middle, np.float32(0))), codes)
    np.testing.assert_array_equal(encode(np.nextafter(middle, np.float32(1e9))), codes + 1)
    np.testing.assert_array_equal(encode(-middle), (codes + codes % 2) | 0x80)


def test_random_values_agree_with_ml_dtypes() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(200_000) * 2.0 ** rng.integers(-12, 9, 200_000)).astype(np.float32)
    theirs = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(encode(x), theirs)


def test_beyond_448_saturates_and_nan_stays() -> None:
    x = np.array([449, 464, 465, 480, 1e6, np.inf, -np.inf, -1e30, np.nan, -0.0], np.float32)
    np.testing.assert_array_equal(encode(x), [126, 126, 126, 126, 126, 126, 254, 254, 127, 128])
    assert MAGNITUDES[-1] == 448
