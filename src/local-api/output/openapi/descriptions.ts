import { containerDescriptions } from './descriptions/container.ts';
import { metaDescriptions, otherDescriptions } from './descriptions/other.ts';
import { podDescriptions } from './descriptions/pod.ts';
import { volumeDescriptions } from './descriptions/volume.ts';

/**
 * Parses the descriptions of kinds and fields: a line `Kind: text`, followed by lines ` field:
 * text`.
 */
export function descriptionText(): string {
  return [
    metaDescriptions,
    podDescriptions,
    containerDescriptions,
    volumeDescriptions,
    otherDescriptions,
  ].join('');
}

/**
 * The descriptions of kinds and fields. `Kind like Other: text` inherits the field descriptions of
 * another kind; those under `*` apply to fields of any kind without an own description.
 */
export class Descriptions {
  readonly #texts = new Map<string, string>();
  readonly #likes = new Map<string, string>();

  constructor(text: string = descriptionText()) {
    let kind = '';
    for (const line of text.split('\n').filter((each) => each !== '')) {
      const { name, told: description, like } = readLine(line);
      if (!line.startsWith(' ')) kind = name;
      this.#texts.set(line.startsWith(' ') ? `${kind}.${name}` : name, description);
      if (like !== undefined) this.#likes.set(kind, like);
    }
  }

  /** The names of all described kinds and fields, such as `Pod` and `Pod.spec`. */
  get subjects(): readonly string[] {
    return [...this.#texts.keys()].filter((subject) => !subject.startsWith('*'));
  }

  ofKind(kind: string): string | undefined {
    return this.#texts.get(kind);
  }

  ofField(kind: string, field: string): string | undefined {
    const own = this.#texts.get(`${kind}.${field}`);
    if (own !== undefined) return own;
    const like = this.#likes.get(kind);
    return (
      (like === undefined ? undefined : this.#texts.get(`${like}.${field}`)) ?? this.#texts.get(`*.${field}`)
    );
  }
}

function readLine(line: string) {
  const end = line.indexOf(':');
  const head = (end === -1 ? line : line.slice(0, end)).trim();
  const text = end === -1 ? '' : line.slice(end + 1).trim();
  const [name = '', , like] = head.split(' ');
  return { name, told: text, like };
}
