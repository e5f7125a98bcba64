/* Reading checked JSON: a value is passed by, of a string to its NUL, of an array or object to the
 * bracket that closes it. Cost: linear; a value is passed by once for each level above it. */
#include "json_text.h"

#include <string.h>

#include "streams/base/region.h"
#include "streams/text/csv.h"
#include "streams/text/json_write.h"

/* ---- Reading ---- */

static const char *text_of(const struct tarn_json *value) { return (const void *)value; }

static const struct tarn_json *value_at(const char *text) { return (const void *)text; }

static const char *without_blanks(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') at++;
    return at;
}

static size_t token_size(const char *at) { return strcspn(at, ",]} \n\t\r"); }

/* Behind the value that begins there. */
static const char *behind(const char *at)
{
    size_t depth = 0;
    do {
        if (*at == '"') {
            at += strlen(at) + 1;
        } else if (*at == '[' || *at == '{') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '}') {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
        } else {
            at += token_size(at);
        }
    } while (depth > 0);
    return at;
}

enum tarn_json_type tarn_json_type_of(const struct tarn_json *value)
{
    const char *text = text_of(value);
    switch (*text) {
    case '{': return TARN_JSON_OBJECT;
    case '[': return TARN_JSON_ARRAY;
    case '"': return TARN_JSON_STRING;
    case 't':
    case 'f': return TARN_JSON_BOOLEAN;
    case 'n': return TARN_JSON_NULL;
    }
    text += *text == '-';
    text += strspn(text, "0123456789");
    return *text == '.' || *text == 'e' || *text == 'E' ? TARN_JSON_REAL : TARN_JSON_INTEGER;
}

const struct tarn_json *tarn_json_first(const struct tarn_json *array)
{
    if (!array || *text_of(array) != '[') return NULL;
    const char *at = without_blanks(text_of(array) + 1);
    return *at == ']' ? NULL : value_at(at);
}

const struct tarn_json *tarn_json_next(const struct tarn_json *element)
{
    const char *at = without_blanks(behind(text_of(element)));
    return *at == ',' ? value_at(without_blanks(at + 1)) : NULL;
}

bool tarn_json_next_member(const struct tarn_json *object, struct tarn_json_member *member)
{
    const char *at =
        without_blanks(member->key ? behind(text_of(member->value)) : text_of(object) + 1);
    if (*at == ',') at = without_blanks(at + 1);
    if (*at == '}') return false;
    member->key = at + 1;
    at = without_blanks(behind(at));
    member->value = value_at(without_blanks(at + 1)); /* behind the colon */
    return true;
}

const char *tarn_json_characters(const struct tarn_json *string) { return text_of(string) + 1; }

const char *tarn_json_token(const struct tarn_json *value, size_t *size)
{
    *size = token_size(text_of(value));
    return text_of(value);
}

/* ---- Whole values ---- */

size_t tarn_json_depth(const struct tarn_json *value)
{
    const char *at = text_of(value), *end = behind(at);
    size_t depth = 0, deepest = 0;
    while (at < end) {
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        if (depth > deepest) deepest = depth;
        at += *at == '"' ? strlen(at) + 1 : 1;
    }
    return deepest;
}

void tarn_json_write_compact(const struct tarn_json *value, FILE *file)
{
    const char *at = text_of(value), *end = behind(at);
    while (at < end) {
        if (*at == '"') {
            tarn_json_write_string(file, at + 1);
            at = behind(at);
        } else {
            fputc(*at, file);
            at++;
        }
        at = without_blanks(at);
    }
}

/* The keys of the objects that are open, those of the innermost last. */
struct keys {
    struct tarn_region region;
    struct tarn_csv_name *names;
    size_t room; /* of `names` */
    uint32_t count;
    uint32_t begin[TARN_JSON_DEPTH_MAX]; /* level -> its first key */
    size_t depth;
};

static bool push_key(struct keys *keys, const char *key)
{
    struct tarn_csv_name *names = tarn_region_grow(&keys->region, keys->names, &keys->room,
                                                   (size_t)keys->count + 1, sizeof *names);
    if (!names) return false;
    keys->names = names;
    keys->names[keys->count] = (struct tarn_csv_name){key, keys->count};
    keys->count++;
    return true;
}

/* Closes a level; its key that is there twice, or NULL. */
static const char *pop_keys(struct keys *keys)
{
    uint32_t begin = keys->begin[--keys->depth], count = keys->count - begin;
    keys->count = begin;
    const struct tarn_csv_name *twin =
        count > 1 ? tarn_csv_find_twin(keys->names + begin, count) : NULL;
    return twin ? twin->text : NULL;
}

bool tarn_json_find_twin(const struct tarn_json *value, const char **twin)
{
    struct keys keys = {0};
    const char *at = text_of(value), *end = behind(at);
    bool ok = true;
    *twin = NULL;
    while (ok && !*twin && at < end) {
        const char *next = *at == '"' ? at + strlen(at) + 1 : at + 1;
        if (*at == '[' || *at == '{')
            keys.begin[keys.depth++] = keys.count;
        else if (*at == ']' || *at == '}')
            *twin = pop_keys(&keys);
        else if (*at == '"' && *without_blanks(next) == ':')
            ok = push_key(&keys, at + 1);
        at = next;
    }
    tarn_region_finish(&keys.region);
    return ok;
}
