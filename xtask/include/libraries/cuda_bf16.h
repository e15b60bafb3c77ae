/* The libraries' headers use nothing of this one in C. */
