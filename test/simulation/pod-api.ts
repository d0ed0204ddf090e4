import type { PodStatus } from '../../src/kinds/index.ts';
import type { Kubelet } from '../../src/kubelet/index.ts';
import { apiPodOf, uidOf } from './manifests.ts';
import type { PodSketch } from './sketch.ts';

/** The API server of one standalone node: it serves pods and stores their statuses. */
export class PodApi {
  readonly #sketches = new Map<string, PodSketch>();
  readonly #statuses = new Map<string, PodStatus>();
  #isUsed = false;

  /** Whether the kubelet should expect API pods. */
  get state(): 'expected' | 'none' {
    return this.#isUsed ? 'expected' : 'none';
  }

  /** Enables the API server; must be called before the first kubelet starts. */
  open(): void {
    this.#isUsed = true;
  }

  has(name: string): boolean {
    return this.#sketches.has(name);
  }

  write(sketch: PodSketch, kubelet: Kubelet | undefined): void {
    this.#sketches.set(sketch.name, sketch);
    this.#tell(kubelet);
  }

  remove(name: string, kubelet: Kubelet | undefined): void {
    this.#sketches.delete(name);
    this.#tell(kubelet);
  }

  /** Delivers the pods to a new kubelet and stores its statuses. */
  serve(kubelet: Kubelet): void {
    if (!this.#isUsed) return;
    kubelet.state.statuses.onChange(({ uid, after }) => this.#statuses.set(uid, after));
    this.#tell(kubelet);
  }

  #tell(kubelet: Kubelet | undefined): void {
    const pods = [...this.#sketches.values()].map((sketch) =>
      apiPodOf(sketch, this.#statuses.get(uidOf(sketch)) ?? { phase: 'Pending' }),
    );
    kubelet?.state.config.set('api', pods);
  }
}
