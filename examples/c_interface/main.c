/* main.c: a program of C that trains the network of net.h to tell a disc from the ring around it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

enum { n = 1000 };

int main(void) {
  static float points[2 * n];
  static int64_t classes[n], found[n];
  srand(1);
  for (int i = 0; i < n; ++i) {
    const double radius = 2.0 * rand() / RAND_MAX, angle = 6.2832 * rand() / RAND_MAX;
    points[2 * i] = (float)(radius * cos(angle));
    points[2 * i + 1] = (float)(radius * sin(angle));
    classes[i] = radius > 1;
  }

  net* one = net_new(32, 1);
  double loss = 0;
  if (one == NULL || net_fit(one, points, classes, n, 300, &loss) != 0 || net_classify(one, points, n, found) != 0) {
    fprintf(stderr, "%s\n", net_error());
    return 1;
  }
  int right = 0;
  for (int i = 0; i < n; ++i) right += found[i] == classes[i];
  printf("loss %.4f, %d of %d points are told apart\n", loss, right, n);

  classes[3] = 7;
  if (net_fit(one, points, classes, n, 1, &loss) != 0) printf("refused: %s\n", net_error());
  net_free(one);
  return right > 950 ? 0 : 1;
}
