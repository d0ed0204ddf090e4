import type { Kubelet } from '../../../src/kubelet/index.ts';
import { type Random, randomInt } from '../../../src/lib/index.ts';
import type { StoreChange } from '../../../src/local-api/storage/versioned-store.ts';
import type { VirtualClock } from '../../fakes/virtual-clock.ts';
import type { Desk } from '../desk.ts';
import { uidOf } from '../manifests.ts';
import { type ContainerSketch, images, type PodSketch } from '../sketch.ts';
import { type RestScene, unlikeTheNode } from './cluster-rest.ts';
import type { ClusterStep } from './cluster-steps.ts';
import type { ClusterWorld } from './cluster-world.ts';

export interface ScenarioOptions {
  readonly cluster: ClusterWorld;
  readonly desk: Desk;
  readonly clock: VirtualClock;
  readonly random: Random;
  /** Called for each pod when it is created, and when its spec is edited. */
  readonly met: (sketch: PodSketch) => void;
  /** Called when a container exits differently from the generated description of its pod. */
  readonly disturbed: (uid: string) => void;
  readonly note: (what: string) => void;
}

/**
 * Applies the actions of users and controllers, and API failures, to the API server, and updates
 * the desired state accordingly.
 */
export class Scenario {
  readonly #options: ScenarioOptions;
  /** Pods to create after the pod of the same name is removed. */
  readonly #next = new Map<string, PodSketch>();
  readonly #coming = new Set<string>();

  constructor(options: ScenarioOptions) {
    this.#options = options;
  }

  /** Differences, possibly temporary, from the state expected when the node has no pending work. */
  unlikeTheNode(kubelet: Kubelet | undefined, running: RestScene['running']): readonly string[] {
    const { cluster, desk, clock } = this.#options;
    const pending = [...this.#next.keys(), ...this.#coming];
    return [
      ...unlikeTheNode({ cluster, kubelet, running, wanted: desk.wanted(), now: clock.now() }),
      ...pending.map((name) => `the next ${name} is not created yet`),
    ];
  }

  take(step: ClusterStep): void {
    const { cluster, note } = this.#options;
    note(`cluster: ${JSON.stringify(step)}`);
    switch (step.do) {
      case 'create':
        this.create(step.sketch);
        break;
      case 'label':
        if (this.#current(step.name) !== undefined) cluster.label(step.name, step.value);
        break;
      case 'call-unready':
        if (this.#current(step.name) !== undefined) cluster.callUnready(step.name);
        break;
      case 'new-image':
        this.#changeImage(step.name);
        break;
      case 'resize':
        this.#resize(step);
        break;
      case 'look-into':
        this.#lookInto(step);
        break;
      case 'delete':
        this.#delete(step);
        break;
      case 'delete-mirror':
        cluster.delete(`${step.name}-node`, step.grace);
        break;
      case 'delete-node':
        cluster.deleteNode();
        break;
      case 'faults':
        cluster.faults(step);
        break;
      case 'no-faults':
        cluster.api.setFaults(undefined);
        break;
      case 'go-away':
        cluster.goAway(step.how);
        break;
      case 'come-back':
        cluster.comeBack();
        break;
      case 'compact':
        cluster.api.compact();
        break;
      case 'cut-watches':
        cluster.api.cutWatches();
        break;
    }
  }

  /** Creates the pod, or does nothing if a pod of the same name exists. */
  create(sketch: PodSketch): void {
    const { cluster, desk, met } = this.#options;
    if (cluster.pod(sketch.name) !== undefined) return;
    met(sketch);
    desk.write(sketch);
    cluster.create(sketch);
  }

  /** Replaces the spec of an existing pod. */
  edit(sketch: PodSketch): void {
    const { cluster, desk, met } = this.#options;
    if (this.#current(sketch.name) === undefined) return;
    met(sketch);
    desk.write(sketch);
    cluster.edit(sketch);
  }

  remove(name: string): void {
    this.#next.delete(name);
    this.#options.desk.remove(name);
    this.#options.cluster.delete(name, undefined);
  }

  changed({ type, resource, object }: StoreChange): void {
    const { name } = object.metadata;
    const next = this.#next.get(name);
    if (type !== 'DELETED' || resource.plural !== 'pods' || next === undefined) return;
    this.#next.delete(name);
    this.#coming.add(name);
    const { clock, random } = this.#options;
    clock.timer(randomInt(random, 2_000), () => {
      this.#coming.delete(name);
      this.create(next);
    });
  }

  #delete({ name, grace, next }: Extract<ClusterStep, { do: 'delete' }>): void {
    const { cluster, desk } = this.#options;
    const object = cluster.pod(name);
    if (object === undefined) return;
    // Limits the requested grace period to that of the pod, because the API would grant a longer
    // one. A pod that is no longer desired is deleted with a grace period of 0.
    const most = desk.sketchOf(name)?.graceSeconds ?? 0;
    const given = grace === undefined ? undefined : Math.min(grace, most);
    if (given !== undefined) desk.shorten(object.metadata.uid, given);
    desk.remove(name);
    if (next !== undefined) this.#next.set(name, next);
    cluster.delete(name, given);
  }

  #changeImage(name: string): void {
    const sketch = this.#current(name);
    const [first, ...rest] = sketch?.containers ?? [];
    if (sketch === undefined || first === undefined || first.pullPolicy !== undefined) return;
    const { present, pulled } = images;
    if (first.image !== present && first.image !== pulled) return;
    const image = first.image === present ? pulled : present;
    this.#options.disturbed(uidOf(sketch));
    this.edit({ ...sketch, containers: [{ ...first, image }, ...rest] });
  }

  #resize({ name, sizes }: Extract<ClusterStep, { do: 'resize' }>): void {
    const sketch = this.#current(name);
    if (sketch === undefined) return;
    const resized = (container: ContainerSketch) => {
      const size = sizes[container.name];
      return size === undefined ? container : { ...container, size };
    };
    const [init, containers] = [sketch.init.map(resized), sketch.containers.map(resized)];
    if ([...init, ...containers].some(({ restartsForSize }) => restartsForSize !== undefined))
      this.#options.disturbed(uidOf(sketch));
    this.edit({ ...sketch, init, containers });
  }

  #lookInto({ name, container }: Extract<ClusterStep, { do: 'look-into' }>): void {
    const sketch = this.#current(name);
    if (sketch === undefined) return;
    const { ephemeral = [] } = sketch;
    this.edit({ ...sketch, ephemeral: [...ephemeral, { ...container, name: `debug${ephemeral.length}` }] });
  }

  /** The generated description of the pod with that name, unless the pod is being deleted. */
  #current(name: string): PodSketch | undefined {
    const object = this.#options.cluster.pod(name);
    return object?.metadata.deletionTimestamp === undefined ? this.#options.desk.sketchOf(name) : undefined;
  }
}
