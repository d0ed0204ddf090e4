import { pick, type Random, randomInt } from '../../src/lib/index.ts';
import {
  type ContainerSketch,
  type HookSketch,
  images,
  type PodSketch,
  type ProbeSketch,
  type ProbeType,
} from './sketch.ts';

type Nameless = Omit<ContainerSketch, 'name'>;

/** An optional property of a generated pod; all pods have containers that run and exit. */
export type Feature = 'init' | 'sidecars' | 'hooks' | 'probes' | 'policies' | 'crashes' | 'deadline';

const chances: Readonly<Record<Feature, number>> = {
  init: 0.3,
  sidecars: 0.15,
  hooks: 0.2,
  probes: 0.15,
  policies: 0.1,
  crashes: 0.05,
  deadline: 0.1,
};
const features = Object.keys(chances) as readonly Feature[];

/** Generates random pods. Equal random numbers give equal pods. */
export class Sketcher {
  readonly #random: Random;
  readonly #always: ReadonlySet<Feature>;
  #revision = 0;

  /** All generated pods have the properties in `always`. */
  constructor(random: Random, always: readonly Feature[] = []) {
    this.#random = random;
    this.#always = new Set(always);
  }

  pod(name: string): PodSketch {
    const has = new Set(
      features.filter((each) => this.#random.next() < chances[each] || this.#always.has(each)),
    );
    // Pods with restart rules have no probes, because a container killed for a failed probe exits
    // with another code than the pod's description defines.
    if (has.has('policies')) has.delete('probes');
    // Containers of a pod with an active deadline do not exit by themselves, because otherwise
    // either the exit or the deadline could come first.
    const mayHaveDeadline = has.has('deadline') && !has.has('policies');
    const policies = ['Always', 'Always', 'OnFailure', 'Never'] as const;
    const isSteady = mayHaveDeadline || has.has('policies') || has.has('probes');
    const graceSeconds = this.#of([0, 1, 5, 30]);
    return {
      name,
      revision: ++this.#revision,
      restartPolicy: isSteady ? 'Always' : this.#of(policies),
      graceSeconds,
      deadlineSeconds: mayHaveDeadline ? this.#of([3, 10, 40]) : undefined,
      init: this.#init(has, graceSeconds),
      containers: this.#many('main', 3, () => this.#dressed(this.#container(has), has, graceSeconds)),
    };
  }

  /**
   * An API pod without a deadline, so that it runs long enough for ephemeral containers to be
   * added.
   */
  apiPod(name: string): PodSketch {
    const { deadlineSeconds: _none, ...sketch } = this.pod(name);
    return { ...sketch, source: 'api' };
  }

  /** The pod with one more ephemeral container. */
  withEphemeral(sketch: PodSketch): PodSketch {
    const index = sketch.ephemeral?.length ?? 0;
    const behaviour =
      this.#random.next() < 0.5 ? {} : { runMs: this.#some([10, 5_000]), exitCode: this.#whole(2) };
    const added = { name: `debug${index}`, image: images.present, ...behaviour };
    return { ...sketch, ephemeral: [...(sketch.ephemeral ?? []), added] };
  }

  #init(has: ReadonlySet<Feature>, graceSeconds: number): readonly ContainerSketch[] {
    if (!has.has('init') && !has.has('sidecars')) return [];
    const isSidecar = () => has.has('sidecars') && (!has.has('init') || this.#random.next() < 0.5);
    return this.#many('init', 3, () =>
      isSidecar() ? this.#dressed(this.#sidecar(), has, graceSeconds) : this.#initContainer(has),
    );
  }

  #many(prefix: string, most: number, make: () => Nameless): readonly ContainerSketch[] {
    return Array.from({ length: 1 + this.#whole(most) }, (_, index) => ({
      name: `${prefix}${index}`,
      ...make(),
    }));
  }

  #image(): Pick<ContainerSketch, 'image' | 'pullPolicy'> {
    const { present, pulled, slow, flaky, missing } = images;
    const image = this.#of([
      present,
      present,
      present,
      present,
      present,
      present,
      pulled,
      slow,
      flaky,
      missing,
    ]);
    if (this.#random.next() < 0.7) return { image };
    return { image, pullPolicy: image === present || this.#random.next() < 0.3 ? 'Never' : 'Always' };
  }

  #container(has: ReadonlySet<Feature>): Nameless {
    const base = { ...this.#image(), onTerm: this.#onTerm() };
    if (has.has('policies')) return { ...base, ...this.#withPolicy() };
    const kind = this.#of(['stays', 'stays', 'stays', 'stays', 'ends', 'flaky'] as const);
    if (has.has('crashes')) return { ...base, failsBefore: 3 + this.#whole(3) };
    // Containers with probes run permanently.
    if (kind === 'stays' || has.has('probes')) return base;
    if (kind === 'flaky') return { ...base, failsBefore: 1 + this.#whole(2) };
    return { ...base, runMs: this.#some([10, 1_000, 20_000]), exitCode: this.#of([0, 0, 1]) };
  }

  /**
   * Returns a restart policy for one container and, where the policy needs it, restart rules and
   * the exits of the program to which they apply.
   */
  #withPolicy(): Partial<Nameless> {
    const failsBefore = 1 + this.#whole(2);
    switch (this.#of(['ends', 'never', 'rule', 'all', 'other'] as const)) {
      case 'ends':
        return {
          restartPolicy: this.#of(['OnFailure', 'Never'] as const),
          runMs: this.#some([10, 5_000]),
          exitCode: this.#of([0, 0, 1]),
        };
      case 'never':
        return { restartPolicy: 'Never' };
      case 'rule':
        return {
          restartPolicy: 'Never',
          failsBefore,
          failsWith: 42,
          restartRules: [{ action: 'Restart', operator: 'In', values: [41, 42] }],
        };
      case 'all':
        return {
          restartPolicy: 'Never',
          failsBefore: 1,
          failsWith: 42,
          restartRules: [{ action: 'RestartAllContainers', operator: 'In', values: [42] }],
        };
      case 'other':
        return {
          restartPolicy: 'Never',
          failsBefore,
          restartRules: [{ action: 'Restart', operator: 'NotIn', values: [0] }],
        };
    }
  }

  #initContainer(has: ReadonlySet<Feature>): Nameless {
    const fails = this.#random.next() < 0.1;
    const base = {
      image: this.#random.next() < 0.2 ? images.pulled : images.present,
      runMs: this.#some([10, 500, 3_000]),
      exitCode: fails ? 1 : 0,
    };
    const isFlaky = this.#random.next() < 0.15;
    const own = has.has('policies') && this.#random.next() < 0.3 ? { restartPolicy: 'Never' as const } : {};
    return { ...base, ...own, ...(isFlaky && { failsBefore: 1 + this.#whole(2) }) };
  }

  /** A sidecar: some fail at first, some fail always, some stop slowly. */
  #sidecar(): Nameless {
    const base = { image: images.present, restartPolicy: 'Always', onTerm: this.#onTerm() } as const;
    const kind = this.#of(['stays', 'stays', 'stays', 'flaky', 'crashes'] as const);
    if (kind === 'flaky') return { ...base, failsBefore: 1 + this.#whole(2) };
    if (kind === 'stays') return base;
    return { ...base, runMs: this.#some([10, 3_000, 30_000]), exitCode: this.#of([0, 1]) };
  }

  #onTerm(): NonNullable<ContainerSketch['onTerm']> {
    return this.#of(['die', 'die', 'ignore', 1_500] as const);
  }

  #dressed(container: Nameless, has: ReadonlySet<Feature>, graceSeconds: number): Nameless {
    const hooks = has.has('hooks') ? this.#hooks(container, graceSeconds) : {};
    const probes = has.has('probes') ? { probes: this.#probes() } : {};
    return { ...container, ...hooks, ...probes };
  }

  #hooks({ runMs }: Nameless, graceSeconds: number): Pick<ContainerSketch, 'postStart' | 'preStop'> {
    // A container that exits by itself gets no postStart hook, because it may exit before the hook
    // completes.
    const mayHavePostStart = runMs === undefined && this.#random.next() < 0.5;
    return {
      ...(mayHavePostStart && { postStart: this.#hook(graceSeconds) }),
      ...(this.#random.next() < 0.6 && { preStop: this.#hook(graceSeconds) }),
    };
  }

  #hook(graceSeconds: number): HookSketch {
    const kind = this.#of(['works', 'works', 'works', 'sleeps', 'sleeps', 'fails', 'hangs'] as const);
    // A hook never sleeps longer than the grace of the pod.
    if (kind === 'sleeps') return { kind: 'sleep', seconds: Math.min(this.#of([0, 1, 3, 10]), graceSeconds) };
    if (kind === 'hangs') return { kind: 'hangs' };
    return { kind: 'exec', takesMs: this.#some([10, 2_000, 8_000]), exitCode: kind === 'fails' ? 1 : 0 };
  }

  #probes(): NonNullable<ContainerSketch['probes']> {
    const types: readonly ProbeType[] = ['liveness', 'readiness', 'startup'];
    return Object.fromEntries(
      types.filter(() => this.#random.next() < 0.5).map((type) => [type, this.#probe(type)]),
    );
  }

  #probe(type: ProbeType): ProbeSketch {
    const isBad = this.#random.next() < 0.4;
    const failureThreshold = 1 + this.#whole(3);
    const failsFrom = type === 'startup' ? 1 : 1 + this.#whole(4);
    return {
      way: this.#of(['exec', 'tcp'] as const),
      periodSeconds: this.#of([1, 3, 10]),
      failureThreshold,
      initialDelaySeconds: this.#of([0, 0, 2]),
      badly: this.#of(['fails', 'fails', 'late'] as const),
      failsFrom,
      failsTo: failsFrom + this.#whole(6),
      untilAttempt: isBad ? 1 + this.#whole(2) : 0,
    };
  }

  #whole(bound: number): number {
    return randomInt(this.#random, bound);
  }

  /** A random number below one of the bounds, which is selected randomly. */
  #some(bounds: readonly number[]): number {
    return this.#random.next() * this.#of(bounds);
  }

  #of<T>(items: readonly T[]): T {
    return pick(this.#random, items) as T;
  }
}
