import type { ApiFaultRates } from '../../simulator/index.ts';
import type { ContainerSize, ContainerSketch, PodSketch } from '../sketch.ts';

/** One action of a user or controller on the simulated API server, or a failure of the server. */
export type ClusterStep =
  | { readonly do: 'create'; readonly sketch: PodSketch }
  /** Changes labels and annotations, which must not affect running containers. */
  | { readonly do: 'label'; readonly name: string; readonly value: string }
  | { readonly do: 'new-image'; readonly name: string }
  /** Changes the resources of the named containers; the others stay unchanged. */
  | {
      readonly do: 'resize';
      readonly name: string;
      readonly sizes: Readonly<Record<string, ContainerSize>>;
    }
  | { readonly do: 'look-into'; readonly name: string; readonly container: ContainerSketch }
  /**
   * Deletes the pod, by force if the grace is 0. If `next` is given, creates the pod `next` after
   * the pod of the same name is removed.
   */
  | {
      readonly do: 'delete';
      readonly name: string;
      readonly grace?: number | undefined;
      readonly next?: PodSketch | undefined;
    }
  /** Marks the Node not ready, as the node controller does when the lease expires. */
  | { readonly do: 'call-unready'; readonly name: string }
  | { readonly do: 'delete-mirror'; readonly name: string; readonly grace?: number | undefined }
  | { readonly do: 'delete-node' }
  | { readonly do: 'faults'; readonly rates: ApiFaultRates; readonly maxDelayMs: number }
  | { readonly do: 'no-faults' }
  | { readonly do: 'go-away'; readonly how: 'refusing' | 'silent' }
  | { readonly do: 'come-back' }
  | { readonly do: 'compact' }
  | { readonly do: 'cut-watches' };
