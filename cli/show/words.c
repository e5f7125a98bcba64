/* Writes names and amounts. Names go through the library's escaping twice: hidden characters become
 * '?', then characters with a meaning in the output language are escaped. Cost: linear. */
#include "words.h"

#include <inttypes.h>
#include <string.h>

void tarn_write_name(FILE *file, enum tarn_language language, const char *name, size_t limit)
{
    if (language == TARN_JSON) fputc('"', file);
    tarn_write_inside(file, language, name, limit);
    if (language == TARN_JSON) fputc('"', file);
}

void tarn_write_inside(FILE *file, enum tarn_language language, const char *name, size_t limit)
{
    char plain[TARN_LINE_MAX + 4], escaped[6 * sizeof plain];
    if (limit > TARN_LINE_MAX) limit = TARN_LINE_MAX;
    size_t whole = tarn_text_escape(TARN_PLAIN, name, plain, limit + 1);
    if (whole > limit) { /* again, with room for the mark */
        tarn_text_escape(TARN_PLAIN, name, plain, limit > 2 ? limit - 1 : 1);
        strcat(plain, limit > 2 ? ".." : "");
    }
    tarn_text_escape(language, plain, escaped, sizeof escaped);
    fputs(escaped, file);
}

struct tarn_amount tarn_amount(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct tarn_amount amount;
    double number = (double)bytes;
    size_t unit = 0;
    for (; number >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++) number /= 1024;
    int places = unit == 0 ? 0 : number < 100 ? 2 : 1;
    snprintf(amount.text, sizeof amount.text, "%.*f %s", places, number, units[unit]);
    return amount;
}

struct tarn_amount tarn_round_amount(uint64_t bytes)
{
    struct tarn_amount amount = tarn_amount(bytes);
    char *point = strchr(amount.text, '.'), *unit = strchr(amount.text, ' ');
    if (point && unit && point + 1 + strspn(point + 1, "0") == unit)
        memmove(point, unit, strlen(unit) + 1);
    return amount;
}

struct tarn_amount tarn_grouped(uint64_t number)
{
    struct tarn_amount amount;
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number), at = 0;
    for (int i = 0; i < length && at + 2 < (int)sizeof amount.text; i++) {
        if (i > 0 && (length - i) % 3 == 0) amount.text[at++] = ',';
        amount.text[at++] = digits[i];
    }
    amount.text[at] = '\0';
    return amount;
}
