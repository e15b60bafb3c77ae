/* The headers that declare the activity API of CUPTI, and its version. */
#include <cupti_activity.h>
#include <cupti_version.h>
