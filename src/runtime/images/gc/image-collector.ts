import type { NodeJournal } from '../../../journal/index.ts';
import { type Clock, describeError, type Logger, type MetricRegistry } from '../../../lib/index.ts';
import { type ImageGcDeps, ImageGcManager, type ImageGcPolicy } from './image-gc-manager.ts';
import type { ImageLeases } from './image-leases.ts';

export interface ImageCollectorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly node: Pick<NodeJournal, 'event'>;
  readonly manager: Pick<ImageGcManager, 'detect' | 'collect' | 'isEnabled'>;
}

/**
 * The delay of the first image collection, so that it does not slow down pods starting with the
 * node.
 */
const firstMs = 10_000;
const periodMs = 300_000;

/** Detects unused images every five minutes and removes those that the policy does not keep. */
export class ImageCollector {
  readonly #deps: ImageCollectorDeps;
  #failures = 0;

  constructor(deps: ImageCollectorDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    for (let waitMs = firstMs; ; waitMs = periodMs) {
      await clock.sleep(waitMs, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#round(signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { manager, logger, node } = this.#deps;
    try {
      await (manager.isEnabled ? manager.collect(signal) : manager.detect(signal));
      if (this.#failures > 0) logger.info('Image garbage collection succeeded again');
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#failures++;
      const message = describeError(error);
      // A single failure is not logged, because it is common while the runtime starts.
      if (this.#failures > 1) node.event({ type: 'Warning', reason: 'ImageGCFailed', message });
      else logger.warn('Failed to collect image garbage', { because: message });
    }
  }
}

export interface NodeImageGcDeps extends Pick<ImageGcDeps, 'cri' | 'clock' | 'logger'> {
  readonly metrics: MetricRegistry;
  readonly machine: { readonly diskSpace?: ImageGcDeps['diskSpace'] | undefined };
}

/** Removes unused images; undefined when the policy never removes any. */
export function createImageGc(
  { imageGc: policy }: { readonly imageGc?: ImageGcPolicy | undefined },
  { cri, clock, logger, metrics, machine: { diskSpace } }: NodeImageGcDeps,
  { node, leases }: { readonly node: Pick<NodeJournal, 'event'>; readonly leases: ImageLeases },
): ImageGcManager | undefined {
  if (policy === undefined || diskSpace === undefined) return undefined;
  return new ImageGcManager({
    cri,
    clock,
    logger,
    leases,
    policy,
    diskSpace,
    warn: (reason, message) => node.event({ type: 'Warning', reason, message }),
    removed: removalCounter(metrics),
  });
}

function removalCounter(metrics: MetricRegistry): (reason: 'age' | 'space') => void {
  const counter = metrics.counter({
    name: 'kubelet_image_garbage_collected_total',
    help: 'Images that were removed because nobody used them, by reason.',
    labels: ['reason'],
  });
  return (reason) => counter.with({ reason }).inc();
}
