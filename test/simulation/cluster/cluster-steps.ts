import type { ApiFaultRates } from '../../simulator/index.ts';
import type { ContainerSize, ContainerSketch, PodSketch } from '../sketch.ts';

/** One action on the API server, or through it. */
export type ClusterStep =
  | { readonly do: 'create'; readonly sketch: PodSketch }
  /** Changes labels and annotations, which running containers must not notice. */
  | { readonly do: 'label'; readonly name: string; readonly value: string }
  | { readonly do: 'new-image'; readonly name: string }
  /** Containers that are not named stay unchanged. */
  | {
      readonly do: 'resize';
      readonly name: string;
      readonly sizes: Readonly<Record<string, ContainerSize>>;
    }
  | { readonly do: 'look-into'; readonly name: string; readonly container: ContainerSketch }
  /**
   * Force-deletes the pod if no grace is given; creates another pod of the same name afterwards if
   * one is given.
   */
  | {
      readonly do: 'delete';
      readonly name: string;
      readonly grace?: number | undefined;
      readonly next?: PodSketch | undefined;
    }
  /** A controller marks the Node not ready, as the node controller does when the lease expires. */
  | { readonly do: 'call-unready'; readonly name: string }
  | { readonly do: 'delete-mirror'; readonly name: string; readonly grace?: number | undefined }
  | { readonly do: 'delete-node' }
  | { readonly do: 'faults'; readonly rates: ApiFaultRates; readonly maxDelayMs: number }
  | { readonly do: 'no-faults' }
  | { readonly do: 'go-away'; readonly how: 'refusing' | 'silent' }
  | { readonly do: 'come-back' }
  | { readonly do: 'compact' }
  | { readonly do: 'cut-watches' };
