import { type Clock, type Instant, type Logger, Waiters } from '../lib/index.ts';
import { annotations, describePod, type Pod, type PodJournal, type PodSource } from '../pods/index.ts';
import { type KnownPods, mergePods, type PodOperation, withAnnotation, withoutRepeats } from './merge.ts';
import { type HasEnded, type ToldPods, tell } from './telling.ts';

/** A change of the desired pods, one batch of one kind from one source. */
export interface PodUpdate {
  readonly op: PodOperation;
  readonly pods: readonly Pod[];
  readonly source: PodSource;
}

export interface PodConfigOptions {
  /** Those that are set up; nobody waits for any other. */
  readonly sources: readonly PodSource[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly hasEnded: HasEnded;
}

/**
 * Merges the complete lists (SET) the sources send into one ordered stream of changes. What changes is told only when
 * somebody takes it, as the difference between what was told before and what holds now: what was undone in the
 * meantime is not told at all, and a source that changes its mind often makes nobody wait and nothing grow. What it
 * hands out is frozen: whoever wants to change a pod copies it.
 */
export class PodConfig {
  readonly #options: PodConfigOptions;
  readonly #known = new Map<PodSource, KnownPods>();
  /** The pods of the last list, as the source has sent them. */
  readonly #sent = new Map<PodSource, KnownPods>();
  readonly #told = new Map<PodSource, ToldPods>();
  /** Sources that may have something to tell, the one that waits longest first. */
  readonly #changed = new Set<PodSource>();
  readonly #takers = new Waiters<void>();
  /** Sources the sync loop has handled at least one update of. */
  readonly #handled = new Set<PodSource>();

  constructor(options: PodConfigOptions) {
    this.#options = options;
  }

  /** Takes the complete list of a source's pods. */
  set(source: PodSource, pods: readonly Pod[]): void {
    const { clock } = this.#options;
    const before = this.#known.get(source) ?? new Map();
    const unique = this.#unique(source, pods);
    const sent = this.#sent.get(source);
    const seen = timeSeen(clock.now());
    const known = mergePods(before, unique, (pod) => {
      // The very same object as last time has nothing new to say, however many there are.
      if (sent?.get(pod.metadata.uid) === pod) return 'as-before';
      return { pod: withAnnotation(pod, annotations.source, source), seen };
    });
    for (const [uid, pod] of known) if (before.get(uid) !== pod) deepFreeze(pod);
    this.#known.set(source, known);
    this.#sent.set(source, new Map(unique.map((pod) => [pod.metadata.uid, pod])));
    this.#changed.add(source);
    this.#takers.serveAll();
  }

  /** Resolves when there may be something to take. */
  async someChanged(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#changed.size === 0) await this.#takers.wait(signal);
  }

  /** The next of what has changed since it was told last, as it is now; undefined when everything is told. */
  takeUpdate(): PodUpdate | undefined {
    for (const source of this.#changed) {
      const known = this.#known.get(source) ?? new Map();
      const { next, told } = tell(this.#told.get(source), known, this.#options.hasEnded);
      this.#told.set(source, told);
      if (next !== undefined) return { ...next, source };
      this.#changed.delete(source);
    }
    return undefined;
  }

  /** The sync loop has finished handling an update of that source. */
  markHandled(source: PodSource): void {
    if (this.#handled.has(source)) return;
    this.#handled.add(source);
    this.#options.logger.info('A source of pods is ready', { source });
  }

  /** Whether the source has sent a list and an update of it was handled. Never goes back. */
  isReady(source: PodSource): boolean {
    return this.#known.has(source) && this.#handled.has(source);
  }

  allReady(): boolean {
    return this.#options.sources.every((source) => this.isReady(source));
  }

  /** Whether there is one that is ready, or none to wait for. */
  someReady(): boolean {
    const { sources } = this.#options;
    return sources.length === 0 || sources.some((source) => this.isReady(source));
  }

  /** The sources that are set up, each with its readiness. */
  readiness(): readonly { readonly source: PodSource; readonly ready: boolean }[] {
    return this.#options.sources.map((source) => ({ source, ready: this.isReady(source) }));
  }

  #unique(source: PodSource, pods: readonly Pod[]): readonly Pod[] {
    const { unique, repeated } = withoutRepeats(pods);
    for (const { pod, what } of repeated) {
      const value = what === 'name' ? pod.metadata.name : pod.metadata.uid;
      const message = `The pod ${describePod(pod)} from the source ${source} is left out: a pod before it in the same list has the ${what} ${value} too`;
      this.#options.logger.warn(message, { source });
      this.#options.journal.event(pod, { type: 'Warning', reason: 'FailedValidation', message });
    }
    return unique;
  }
}

/** As annotations have it: with nine digits behind the second, of which the clock knows three. */
function timeSeen(now: Instant): string {
  return new Date(now).toISOString().replace('Z', '000000Z');
}

/** What is frozen already is so to the bottom, as nothing else freezes. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
