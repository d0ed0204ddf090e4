import type { ContainerImage } from '../kinds/index.ts';
import { type Clock, withDeadline } from '../lib/index.ts';
import type { NodeImageFacts, NodeRuntime } from './inputs.ts';

const cacheMs = 30_000;
const listTimeoutMs = 10_000;
const mostNames = 5;

export interface NodeImagesDeps {
  readonly clock: Clock;
  readonly runtime: Pick<NodeRuntime, 'images'>;
}

/** The images of the node, listed at most twice a minute. */
export class NodeImages {
  readonly #deps: NodeImagesDeps;
  #list: readonly ContainerImage[] = [];
  #listedMs: number | undefined;

  constructor(deps: NodeImagesDeps) {
    this.#deps = deps;
  }

  /** All images of the last list, the largest first, including those that the Node object omits. */
  get all(): readonly ContainerImage[] {
    return this.#list;
  }

  /**
   * Refreshes an outdated list of images. Rejects when the runtime call fails; the last list is
   * kept.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    const { clock, runtime } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#listedMs !== undefined && nowMs - this.#listedMs < cacheMs) return;
    // A failed call also starts the interval, so that a failing runtime is not called more often.
    this.#listedMs = nowMs;
    const deadline = { clock, ms: listTimeoutMs, what: 'list the images of the node' };
    this.#list = listed(await withDeadline(deadline, (inner) => runtime.images(inner), signal));
  }

  /** Images in the format of the Node status. */
  latest(most: number): readonly ContainerImage[] {
    return most < 0 ? this.#list : this.#list.slice(0, most);
  }
}

function listed(images: readonly NodeImageFacts[]): readonly ContainerImage[] {
  return images
    .map(({ repoDigests, repoTags, sizeBytes }) => ({
      names: [...repoDigests, ...repoTags].slice(0, mostNames),
      sizeBytes,
    }))
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes || order(a.names[0] ?? '', b.names[0] ?? ''));
}

/**
 * Images of equal size are sorted by name; otherwise two lists of the same images could differ in
 * order and cause a patch.
 */
function order(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
