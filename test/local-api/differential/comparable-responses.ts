type Json = Readonly<Record<string, unknown>>;

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const microTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z$/;
const age = /^\d+[smhdy](?:\d+[smhdy])?$/;
/** The IP range from which both servers allocate service addresses. */
const serviceAddress = /\b10\.96\.\d{1,3}\.\d{1,3}\b/g;

/** The Go dump of a rejected value; the text before it describes the forbidden change. */
const goValues = /((?:may not (?:change|be changed)|immutable after creation)[^\n]*)\n[\s\S]*$/;

/**
 * Fields with a random value or a value chosen by the server: only the presence of the field is
 * compared.
 */
const chosen: Readonly<Record<string, string>> = {
  nodePort: '<port>',
  healthCheckNodePort: '<port>',
  certificate: '<certificate>',
  'ca.crt': '<certificate>',
  'authentication.kubernetes.io/credential-id': '<credential>',
  continue: '<continue>',
  // The wording of descriptions differs between servers.
  description: '<words>',
  'kubernetes.io/description': '<words>',
};

/**
 * Makes responses of two servers comparable: replaces each value chosen by a server with a
 * placeholder, the same one for the same value. Each sequence of requests (chapter) uses a separate
 * instance.
 */
export class ComparableResponses {
  readonly #names = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #prefixes = new Set<string>();

  /** Replaces random suffixes after this prefix in all texts. */
  ignoreSuffixOf(prefix: string): void {
    this.#prefixes.add(prefix);
  }

  of(value: unknown): unknown {
    return this.#value(value, '');
  }

  #value(value: unknown, key: string): unknown {
    if (typeof value === 'string') return this.#text(value, key);
    if (typeof value === 'number') return chosen[key] ?? value;
    if (Array.isArray(value)) return value.map((item) => this.#value(item, key));
    if (typeof value !== 'object' || value === null) return value;
    return this.#object(value as Json, key);
  }

  #object(object: Json, key: string): Json {
    this.#learnName(object);
    if (key === 'metadata') this.#learnUid(object);
    const isList = Array.isArray(object['items']) || Array.isArray(object['rows']);
    const isMark = object['metadata'] !== undefined && (object['metadata'] as Json)['name'] === undefined;
    const fields = Object.entries(object)
      .filter(([name, inner]) => name !== 'managedFields' && !isUnset(name, inner))
      .map(([name, inner]) => {
        if (name === 'metadata' && (isList || isMark))
          return [name, this.#value(withoutVersion(inner), name)];
        if (key === 'metadata' && name === 'resourceVersion' && inner !== '<version>')
          return [name, this.#version(String(inner), String(object['uid']))];
        if (name === 'resourceVersion' && inner !== '') return [name, '<version>'];
        if (name === 'causes' && Array.isArray(inner)) return [name, this.#value(distinct(inner), name)];
        return [name, this.#value(inner, name)];
      });
    return Object.fromEntries(fields);
  }

  /**
   * Placeholders of resource versions are counted per object, so that they do not depend on other
   * objects.
   */
  #version(version: string, uid: string): string {
    const object = uid.replace(uuid, (each) => this.#named('uid', each));
    return this.#named(`${object.replaceAll(/[<>]/g, '')} at`, version);
  }

  /** Replaces the random suffix of a generated name in all texts. */
  #learnName({ metadata }: Json): void {
    const { name, generateName } = (metadata ?? {}) as { name?: string; generateName?: string };
    if (generateName !== undefined && name !== undefined && name !== generateName)
      this.#texts.set(name, `${generateName}<chance>`);
  }

  /** Numbers the UIDs of objects with the same name, because a recreated object has another UID. */
  #learnUid({ name, uid }: Json): void {
    if (typeof uid !== 'string' || typeof name !== 'string' || this.#names.has(`uid ${uid}`)) return;
    const shown = this.#texts.get(name) ?? name;
    const count = (this.#counts.get(shown) ?? 0) + 1;
    this.#counts.set(shown, count);
    this.#names.set(`uid ${uid}`, `<uid of ${shown}${count === 1 ? '' : ` ${count}`}>`);
  }

  #text(text: string, key: string): string {
    const fixed = chosen[key];
    if (fixed !== undefined && (text !== '' || fixed === '<words>') && text !== 'None') return fixed;
    if (time.test(text)) return '<time>';
    if (microTime.test(text)) return '<micro-time>';
    if (key === 'cells' && age.test(text)) return '<age>';
    if (/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return '<token>';
    if (text === '<unstable>') return text;
    return this.#inside(text);
  }

  #inside(text: string): string {
    const known = this.#texts.entries().reduce((shown, [from, to]) => shown.replaceAll(from, to), text);
    return [...this.#prefixes]
      .reduce(
        (shown, prefix) => shown.replaceAll(new RegExp(`${prefix}[a-z0-9]{5}\\b`, 'g'), `${prefix}<chance>`),
        known,
      )
      .replace(goValues, '$1')
      .replace(uuid, (each) => this.#named('uid', each))
      .replace(serviceAddress, (each) => this.#named('address', each))
      .replace(/kube-api-access-\w{5}/g, 'kube-api-access-*')
      .replace(
        /(ResourceVersion in (?:the )?(?:precondition|record) ?\(|Version in object meta: |resource version: )\d+/g,
        '$1<version>',
      )
      .replace(/(resource version: <version>)(?: \(\d+\)|, current: \d+)/g, '$1, now <version>')
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>')
      .replace(/https:\/\/kubernetes\.default\.svc(?:\.cluster\.local)?/g, '<issuer>')
      .replace(/X509SHA256=[0-9a-f]{64}/g, '<credential>');
  }

  #named(what: string, text: string): string {
    const known = this.#names.get(`${what} ${text}`);
    if (known !== undefined) return known;
    const count = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, count);
    const name = `<${what} ${count}>`;
    this.#names.set(`${what} ${text}`, name);
    return name;
  }
}

/**
 * Whether a field counts as unset: some servers return unset fields as null and others omit them.
 * Null in place of a list is kept.
 */
function isUnset(name: string, value: unknown): boolean {
  return value === null && !/(?:items|rows|s)$/.test(name);
}

/** Removes duplicates, because a server may report the same cause twice. */
function distinct(causes: readonly unknown[]): readonly unknown[] {
  return [...new Map(causes.map((cause) => [JSON.stringify(cause), cause])).values()];
}

function withoutVersion(metadata: unknown): unknown {
  const { resourceVersion, ...rest } = metadata as Json;
  return resourceVersion === undefined ? rest : { ...rest, resourceVersion: '<version>' };
}
