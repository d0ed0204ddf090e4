import type { Event } from '../../kinds/index.ts';
import { apiTime, type Instant, type Random, randomHex, randomInt, stripControls } from '../../lib/index.ts';
import type { EventSubject } from './reference.ts';

/** An event as recorded by a component. */
export interface EventInput {
  readonly about: EventSubject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly at: Instant;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** The component that reports the event. */
export interface EventOrigin {
  readonly component: string;
  readonly nodeName: string;
}

const longestMessage = 4_096;
const longestName = 253;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Generates event names from the object's name and a unique time. */
export class EventNames {
  readonly #random: Random;
  #lastNanos = 0n;

  constructor(random: Random) {
    this.#random = random;
  }

  /**
   * Returns a unique event name. Two events of one object within a millisecond, or after the clock
   * was set back, must not share a name, because the second one would be lost.
   */
  next(object: string, at: Instant): string {
    const nanos = BigInt(Math.trunc(at)) * 1_000_000n + BigInt(randomInt(this.#random, 1_000_000));
    this.#lastNanos = nanos > this.#lastNanos ? nanos : this.#lastNanos + 1n;
    const name = `${object}.${this.#lastNanos.toString(16)}`;
    return name.length <= longestName && subdomain.test(name) ? name : randomUuid(this.#random);
  }
}

/** Returns the API object of an event that is sent for the first time. */
export function eventObject(note: EventInput, name: string, { component, nodeName }: EventOrigin): Event {
  const time = apiTime(note.at);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name,
      namespace: note.about.namespace || 'default',
      ...(note.annotations && { annotations: note.annotations }),
    },
    involvedObject: note.about,
    reason: note.reason,
    message: note.message,
    source: { component, host: nodeName },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type: note.type,
    reportingComponent: component,
    reportingInstance: nodeName,
  };
}

/**
 * Removes control characters from a message of a container or runtime, which may include terminal
 * escape sequences, and truncates it.
 */
export function cleanMessage(message: string): string {
  const plain = stripControls(message);
  if (plain.length <= longestMessage) return plain;
  // Copies the text through a buffer: a slice would keep the complete original text in memory.
  return `${Buffer.from(plain.slice(0, longestMessage - 1).toWellFormed()).toString('utf8')}…`;
}

function randomUuid(random: Random): string {
  const hex = (length: number) => randomHex(random, length);
  const variant = '89ab'[randomInt(random, 4)];
  return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
}
