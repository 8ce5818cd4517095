/* net.h: a network behind an interface of C, for programs in other languages. */
#ifndef NET_H
#define NET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct net net;

/* Null where it fails; net_error() tells why. */
net* net_new(int64_t width, uint64_t seed);
void net_free(net* one);

/* Trains on n points (x, y) and their classes; puts the last loss where `loss` points. 0, or -1 with net_error(). */
int net_fit(net* one, const float* points, const int64_t* classes, int64_t n, int steps, double* loss);

/* Puts the class of each point into `classes`. 0, or -1 with net_error(). */
int net_classify(const net* one, const float* points, int64_t n, int64_t* classes);

/* The text of the last error of this thread. */
const char* net_error(void);

#ifdef __cplusplus
}
#endif

#endif
