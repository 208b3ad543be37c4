/* Looks up the groups of root through the C library, which asks every service that /etc/nsswitch.conf lists.
 * Linked statically this is what the product must never do: the service's shared library needs the very C library
 * it was built with, and the program is killed. tests/roots/run shows with it that a root is such a trap. */
#include <grp.h>

int main(void) {
    gid_t groups[64];
    int count = 64;
    return getgrouplist("root", 0, groups, &count) < 0;
}
