import { LruMap } from '../../lib/index.ts';

/** So many messages of one reason are told one by one; from then on they share an event. */
export const mostSimilar = 10;
export const similarForMs = 600_000;

interface Group {
  /** Of the messages, the oldest first. */
  readonly messages: Set<string>;
  lastMs: number;
}

/** Knows which events differ in nothing but their message, as those of a failing thing with changing numbers do. */
export class SimilarEvents {
  readonly #groups: LruMap<string, Group>;

  constructor(capacity: number) {
    this.#groups = new LruMap({ capacity });
  }

  /** Whether there are so many messages in the group that this one goes into the common event. */
  isOneOfMany(key: string, message: string, nowMs: number): boolean {
    const known = this.#groups.get(key);
    const group = known !== undefined && nowMs - known.lastMs <= similarForMs ? known : newGroup();
    group.messages.add(message);
    group.lastMs = nowMs;
    this.#groups.set(key, group);
    if (group.messages.size < mostSimilar) return false;
    const [oldest] = group.messages;
    if (oldest !== undefined) group.messages.delete(oldest);
    return true;
  }
}

function newGroup(): Group {
  return { messages: new Set(), lastMs: 0 };
}
