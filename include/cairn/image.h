/* cairn/image.h: images from files, and transforms of them on their way into a batch, as torchvision.transforms.

       cn_transform *t = cn_transform_new(cn);
       cn_transform_random_crop(t, 32, 32, 4);
       cn_transform_random_hflip(t, 0.5);
       cn_transform_normalize(t, (float[]){ 0.49f, 0.48f, 0.45f }, (float[]){ 0.25f, 0.24f, 0.26f }, 3);
       cn_dataset *augmented = cn_dataset_transform(pictures, t);           runs in the loader's workers

   Images are (channels, height, width), u8 from 0 to 255 or f32 from 0 to 1. Steps compute in f32: u8 is divided by 255
   first. The result is f32; with cn_transform_to_u8 it is rounded to u8. Random steps draw from the random numbers of
   their item alone.
   Ownership  A transform belongs to its context, until cn_transform_free. Datasets that use it hold it. Add all steps
              first: a transform cannot change once a dataset uses it.
   Errors     Functions return false and set the error of the context. An image that a step does not accept is an error
              of its item. */
#ifndef CAIRN_IMAGE_H
#define CAIRN_IMAGE_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PNG and JPEG where the system has libpng and libjpeg; PBM, PGM and PPM always. channels: 1 or 3; 0 means 3. Returns
   u8 (channels, height, width). */
CN_API cn_tensor *cn_image_read(cn_ctx *ctx, const char *path, int channels);

/* Writes (channels, height, width) or (height, width) with 1 or 3 channels, u8, or f32 from 0 to 1, which is rounded.
   The end of the path says how: .png (8 bits, lossless, hardly compressed), .ppm or .pgm (3 channels or 1), .jpg or
   .jpeg (where the system has libjpeg). */
typedef struct cn_image_write_desc {
    int quality; /* of JPEG, 1 to 100; 0: 75 */
} cn_image_write_desc;
CN_API bool cn_image_write(cn_tensor *image, const char *path, const cn_image_write_desc *desc);
/* One image of many (n, channels, height, width): rows of `columns` images (0: 8), with a border of `padding` pixels of
   `value` around each (torchvision's make_grid; one channel stays one). Lazy, on any device. */
CN_API cn_tensor *cn_image_grid(cn_tensor *images, int64_t columns, int64_t padding, double value);

/* u8 (..., height, width) in another size: Image.resize of Pillow 13, bit for bit. Where an image shrinks, the filter is
   wider, so that every pixel counts. Computed at once. */
typedef enum cn_image_filter {
    CN_FILTER_BILINEAR,
    CN_FILTER_NEAREST,
    CN_FILTER_BOX,
    CN_FILTER_HAMMING,
    CN_FILTER_BICUBIC,
    CN_FILTER_LANCZOS,
} cn_image_filter;
CN_API cn_tensor *cn_image_resize(cn_tensor *image, int64_t height, int64_t width, cn_image_filter filter);

typedef struct cn_transform cn_transform;

CN_API cn_transform *cn_transform_new(cn_ctx *ctx);
CN_API void cn_transform_free(cn_transform *t);

CN_API bool cn_transform_to_u8(cn_transform *t); /* the dtype of the result; not a step */
CN_API bool cn_transform_normalize(cn_transform *t, const float *mean, const float *std, int channels);
CN_API bool cn_transform_resize(cn_transform *t, int64_t height, int64_t width); /* bilinear, antialiased */
CN_API bool cn_transform_center_crop(cn_transform *t, int64_t height, int64_t width); /* 0 outside of the image */
CN_API bool cn_transform_random_crop(cn_transform *t, int64_t height, int64_t width, int64_t padding);
/* A crop with 8 to 100 % of the area and a ratio of the sides from 3:4 to 4:3, resized to height by width. */
CN_API bool cn_transform_random_resized_crop(cn_transform *t, int64_t height, int64_t width);
CN_API bool cn_transform_random_hflip(cn_transform *t, double p);
CN_API bool cn_transform_random_vflip(cn_transform *t, double p);
/* About the centre, counter-clockwise, by an angle from [from, to] in degrees; bilinear, 0 outside of the image. */
CN_API bool cn_transform_random_rotation(cn_transform *t, double from, double to);
/* In a random order: factors from [max(0, 1 - x), 1 + x], and a shift of the hue from [-hue, hue] (at most 0.5). */
CN_API bool cn_transform_color_jitter(cn_transform *t, double brightness, double contrast, double saturation,
                                      double hue);
/* With probability p, sets a rectangle to `value`: 2 to 33 % of the area, ratio of the sides from 0.3 to 3.3. */
CN_API bool cn_transform_random_erasing(cn_transform *t, double p, double value);

/* ---- as torchvision's functions of tensors. Colours need values from 0 to 1, so they come before normalize. */

/* 0.2989 r + 0.587 g + 0.114 b, in 1 or 3 channels; random: in as many as there are. */
CN_API bool cn_transform_grayscale(cn_transform *t, int channels);
CN_API bool cn_transform_random_grayscale(cn_transform *t, double p);
CN_API bool cn_transform_random_invert(cn_transform *t, double p);       /* 1 - x */
CN_API bool cn_transform_random_solarize(cn_transform *t, double threshold, double p); /* 1 - x where x ≥ threshold */
CN_API bool cn_transform_random_posterize(cn_transform *t, int bits, double p); /* keeps the upper 1 to 8 bits of 8 */
CN_API bool cn_transform_random_autocontrast(cn_transform *t, double p); /* darkest 0, lightest 1, by channel */
CN_API bool cn_transform_random_equalize(cn_transform *t, double p);     /* equal shares of 256 levels, by channel */
CN_API bool cn_transform_random_sharpness(cn_transform *t, double factor, double p); /* 0 blurs, 1 changes nothing */
/* kernel: odd sizes of the window; a deviation from [low, high]. The border is reflected. */
CN_API bool cn_transform_gaussian_blur(cn_transform *t, int64_t kernel_height, int64_t kernel_width, double low,
                                       double high);

/* From [-degrees, degrees]; shifts up to a share of the sides; a scale; shears in degrees. Zeros change nothing. */
typedef struct cn_affine_desc {
    double degrees;
    double translate[2];  /* across, down */
    double scale[2];      /* from, to; 0: 1 */
    double shear[4];      /* x from, x to, y from, y to */
    bool nearest;         /* not bilinear */
    double fill;          /* outside of the image */
} cn_affine_desc;
CN_API bool cn_transform_random_affine(cn_transform *t, const cn_affine_desc *desc);
/* With probability p, moves each corner inwards by up to distortion / 2 of the sides; bilinear. */
CN_API bool cn_transform_random_perspective(cn_transform *t, double distortion, double p, double fill);
/* ops random operations of RandAugment, each with the strength magnitude of 0 to 30; zeros: 2 and 9. */
CN_API bool cn_transform_rand_augment(cn_transform *t, int ops, int magnitude);
/* Sets the part of a square that lies in the image to 0. Its centre is random. */
CN_API bool cn_transform_cutout(cn_transform *t, int64_t side);

/* Mix a batch x (n, ...) of floats with x', the same batch rolled by one item, and the targets alike. MixUp returns
   lambda x + (1 - lambda) x', with lambda from Beta(alpha, alpha). CutMix puts a rectangle of x' into x; lambda is the
   share that is left. y, classes (n) or shares (n, classes), becomes lambda y + (1 - lambda) y', shares (n, classes):
   what cn_cross_entropy takes. *x and *y are the operands and then the results. Lazy, on any device. */
typedef struct cn_mix_desc {
    double alpha;    /* 0: 1 */
    int64_t classes; /* of y (n) */
    uint64_t seed;   /* of this batch: another one for each */
} cn_mix_desc;
CN_API bool cn_mixup(cn_tensor **x, cn_tensor **y, const cn_mix_desc *desc);
CN_API bool cn_cutmix(cn_tensor **x, cn_tensor **y, const cn_mix_desc *desc);

CN_API cn_dataset *cn_dataset_transform(cn_dataset *d, cn_transform *t); /* of field 0; copies the others */
CN_API bool cn_transform_map(void *transform, const cn_map_call *call);  /* the same as a cn_map_fn */
CN_API cn_field cn_transform_field(const cn_transform *t, cn_field in);  /* the field of the result */
CN_API cn_tensor *cn_transform_apply(cn_transform *t, cn_tensor *image, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
