/* Values of options: decimal numbers, sizes with units, seconds, percentages, and words of a list.
 */
#include "values.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Reads digits at *text and moves *text past them. */
static bool read_digits(const char **text, uint64_t *number)
{
    const char *digit = *text;
    uint64_t sum = 0;
    for (; isdigit((unsigned char)*digit); digit++) {
        uint64_t value = (uint64_t)(*digit - '0');
        if (sum > (UINT64_MAX - value) / 10) return false;
        sum = 10 * sum + value;
    }
    if (digit == *text) return false;
    *text = digit;
    *number = sum;
    return true;
}

bool tarn_number_parse(const char *text, uint64_t *number)
{
    uint64_t result;
    if (!read_digits(&text, &result) || *text != '\0') return false;
    *number = result;
    return true;
}

static bool parse_count(const char *text, uint32_t *count)
{
    uint64_t number;
    if (!tarn_number_parse(text, &number) || number > UINT32_MAX) return false;
    *count = (uint32_t)number;
    return true;
}

/* Decimal units and binary ones, smaller units of a kind first. */
static const struct unit {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};
enum { UNITS = sizeof units / sizeof *units, BINARY = 6 /* the first binary one */ };

static bool parse_size(const char *text, uint64_t *size)
{
    uint64_t number;
    if (!read_digits(&text, &number)) return false;
    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(text, units[i].name) != 0) continue;
        if (number > UINT64_MAX / units[i].bytes) return false;
        *size = number * units[i].bytes;
        return true;
    }
    return false;
}

/* ---- Hints for values that are no sizes ---- */

/* Finds a unit by its letters in any case; one letter, as in "8G", is the binary unit. NULL: there
 * is none. */
static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < UNITS; i++)
        if (strcasecmp(name, units[i].name) == 0) return &units[i];
    for (size_t i = BINARY; i < UNITS && name[0] && !name[1]; i++)
        if (tolower((unsigned char)name[0]) == tolower((unsigned char)units[i].name[0]))
            return &units[i];
    return NULL;
}

/* The digits after the point as bytes, not rounded, by long division starting at the last digit. */
static double fraction_of(const char *digits, const char *end, double bytes)
{
    double fraction = 0;
    while (end > digits) fraction = (fraction + (*--end - '0')) / 10;
    return fraction * bytes;
}

/* The size in the largest unit of the same kind in which it is a whole number. */
static void write_size(uint64_t size, const struct unit *unit, char hint[TARN_HINT_MAX])
{
    while (unit->bytes > 1 && size % unit->bytes != 0) unit--;
    if (unit->bytes == 1) unit = units;
    snprintf(hint, TARN_HINT_MAX, ": write %llu%s", (unsigned long long)(size / unit->bytes),
             unit->name);
}

/* "1.5GiB", "8 gib", "8G": a size was meant. False: it was not. */
static bool hint_size(const char *text, char hint[TARN_HINT_MAX])
{
    uint64_t whole = 0;
    const char *digits = "", *end = digits;
    if (*text != '.' && !read_digits(&text, &whole)) return false;
    if (*text == '.' || *text == ',') {
        digits = end = text + 1;
        while (isdigit((unsigned char)*end)) end++;
        text = end;
    }
    text += *text == ' ';
    const struct unit *unit = find_unit(text);
    if (unit == units && end > digits) return false; /* a part of a byte */
    if (!unit || whole > (UINT64_MAX >> 1) / unit->bytes) return false;
    uint64_t size = whole * unit->bytes + (uint64_t)fraction_of(digits, end, (double)unit->bytes);
    if (size == 0) return false;
    write_size(size, unit, hint);
    return true;
}

static bool parse_seconds(const char *text, uint64_t *ns)
{
    const uint64_t second = 1000000000;
    uint64_t whole, fraction = 0;
    if (!read_digits(&text, &whole) || whole > UINT64_MAX / second - 1) return false;
    if (*text == '.') {
        uint64_t weight = second / 10;
        for (text++; isdigit((unsigned char)*text); text++, weight /= 10) {
            fraction += weight * (uint64_t)(*text - '0');
        }
    }
    if (*text != '\0') return false;
    *ns = whole * second + fraction;
    return true;
}

/* A percentage of up to nine decimals, with a percent sign or without; *share is it divided by
 * 100. */
static bool parse_percent(const char *text, double *share)
{
    char number[32];
    uint64_t billionths;
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '%') length--;
    if (length >= sizeof number) return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (!parse_seconds(number, &billionths)) return false;
    *share = (double)billionths / 1e11;
    return true;
}

/* "70%": above 0 and at most all. */
static bool parse_budget(const char *text, struct tarn_size_or_share *budget)
{
    size_t length = strlen(text);
    *budget = (struct tarn_size_or_share){0};
    if (length == 0 || text[length - 1] != '%')
        return parse_size(text, &budget->bytes) && budget->bytes > 0;
    return parse_percent(text, &budget->share) && budget->share > 0 && budget->share <= 1;
}

/* "50GB/s" or "50GB/s,45GB/s". */
static bool parse_rates(const char *text, struct tarn_rates *rates)
{
    *rates = (struct tarn_rates){0};
    for (uint64_t *rate = &rates->out;; rate = &rates->into) {
        char size[32];
        size_t length = strcspn(text, ",");
        if (length < 2 || length - 2 >= sizeof size || memcmp(text + length - 2, "/s", 2) != 0)
            return false;
        memcpy(size, text, length - 2);
        size[length - 2] = '\0';
        if (!parse_size(size, rate) || *rate == 0) return false;
        text += length;
        if (*text == '\0') break;
        if (rate == &rates->into) return false;
        text++;
    }
    if (rates->into == 0) rates->into = rates->out;
    return true;
}

/* Which of the words between bars it is. */
static bool parse_choice(const char *text, const char *words, unsigned *choice)
{
    size_t length = strlen(text);
    for (unsigned i = 0; *words; i++) {
        size_t word = strcspn(words, "|");
        if (word == length && strncmp(words, text, length) == 0) {
            *choice = i;
            return true;
        }
        words += word + (words[word] == '|');
    }
    return false;
}

/* 0 would mean "not given" to the library, which a user who writes 0 does not mean. */
bool tarn_option_parse(const struct tarn_option *option, const char *text)
{
    switch (option->kind) {
    case TARN_OPTION_FLAG: *(bool *)option->value = true; return true;
    case TARN_OPTION_TEXT:
    case TARN_OPTION_INPUT:
    case TARN_OPTION_OUTPUT: *(const char **)option->value = text; return true;
    case TARN_OPTION_COUNT: return parse_count(text, option->value);
    case TARN_OPTION_TIMES:
        return parse_count(text, option->value) && *(uint32_t *)option->value > 0;
    case TARN_OPTION_NUMBER: return tarn_number_parse(text, option->value);
    case TARN_OPTION_SIZE: return parse_size(text, option->value) && *(uint64_t *)option->value > 0;
    case TARN_OPTION_BUDGET: return parse_budget(text, option->value);
    case TARN_OPTION_RATES: return parse_rates(text, option->value);
    case TARN_OPTION_SECONDS:
        return parse_seconds(text, option->value) && *(uint64_t *)option->value > 0;
    case TARN_OPTION_PERCENT: return parse_percent(text, option->value);
    case TARN_OPTION_CHOICE: return parse_choice(text, option->value_name, option->value);
    }
    return false;
}

const char *tarn_option_wanted(const struct tarn_option *option)
{
    switch (option->kind) {
    case TARN_OPTION_COUNT:
    case TARN_OPTION_NUMBER: return "a whole number";
    case TARN_OPTION_TIMES: return "a whole number above 0";
    case TARN_OPTION_SIZE: return "bytes above 0, for example 512, 10MB or 8GiB";
    case TARN_OPTION_BUDGET:
        return "bytes above 0, for example 512, 10MB or 8GiB, or a share up to 100%, for example "
               "70%";
    case TARN_OPTION_RATES:
        return "bytes per second above 0, one way and back, for example 50GB/s or 50GB/s,45GB/s";
    case TARN_OPTION_SECONDS: return "seconds above 0, for example 2 or 0.5";
    case TARN_OPTION_PERCENT: return "a percentage, for example 1 or 0.5";
    case TARN_OPTION_CHOICE: return option->value_name;
    default: return "a value";
    }
}

void tarn_option_hint(const struct tarn_option *option, const char *text, char hint[TARN_HINT_MAX])
{
    hint[0] = '\0';
    if (option->kind == TARN_OPTION_SIZE || option->kind == TARN_OPTION_BUDGET)
        hint_size(text, hint);
}
