import { Background, type BackgroundLoops } from './background.ts';
import type { ConnectedNode, KubeletDeps } from './kubelet-deps.ts';
import { KubeletEndpoints } from './kubelet-endpoints.ts';
import type { KubeletSettings } from './settings.ts';
import { createControl, type KubeletControl, type KubeletParts } from './stages/control.ts';
import { createResources, type KubeletResources } from './stages/resources.ts';
import { createRuntime, type KubeletRuntime } from './stages/runtime.ts';
import { createState, type KubeletState } from './stages/state.ts';
import { createVolumes, type KubeletVolumes } from './stages/volumes.ts';

/**
 * The kubelet of one node, built in stages: each stage uses only the stages before it. Nothing runs
 * before `run`.
 */
export class Kubelet {
  readonly state: KubeletState;
  readonly resources: KubeletResources;
  readonly volumes: KubeletVolumes;
  readonly runtime: KubeletRuntime;
  readonly control: KubeletControl;
  readonly endpoints: KubeletEndpoints;
  readonly #background: Background;
  readonly #clusterLoops: readonly (BackgroundLoops | undefined)[];

  /** `runtimeName` is the name the runtime reports, the scheme of container IDs. */
  static async create(settings: KubeletSettings, deps: KubeletDeps, runtimeName: string): Promise<Kubelet> {
    const state = createState(settings, deps);
    const clusterPods = deps.cluster?.connectPods(state);
    const resources = await createResources(state);
    const volumes = createVolumes(state, resources);
    const runtime = createRuntime(state, resources, volumes, runtimeName);
    const parts = { state, clusterPods, resources, volumes, runtime };
    const control = await createControl(parts);
    return new Kubelet(parts, control, deps.cluster?.connectNode(parts, control));
  }

  private constructor(parts: KubeletParts, control: KubeletControl, node: ConnectedNode | undefined) {
    this.state = parts.state;
    this.resources = parts.resources;
    this.volumes = parts.volumes;
    this.runtime = parts.runtime;
    this.control = control;
    this.#clusterLoops = [parts.clusterPods?.loops, node?.loops];
    this.#background = new Background(parts.state.deps);
    this.endpoints = new KubeletEndpoints(parts, control, node, this.#background);
  }

  /** Runs the kubelet until the signal is aborted; pods keep running after that. */
  async run(signal: AbortSignal): Promise<void> {
    const { state, resources, runtime } = this;
    try {
      state.node.event({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
      for (const event of state.settings.startEvents ?? []) state.node.event(event);
      if ((await this.#open(signal)) === 'aborted') return;
      try {
        await this.#background.runBeside(this.#loops(), (inner) => this.#sync(inner), signal);
      } finally {
        await runtime.dispose();
      }
    } finally {
      resources.disposeCgroups();
    }
  }

  /**
   * Restores the checkpoints of previous kubelet processes, and creates the parent cgroups of pods.
   */
  async #open(signal: AbortSignal): Promise<'opened' | 'aborted'> {
    const { state, resources, volumes, runtime } = this;
    try {
      await Promise.all([state.open(), resources.open(signal), volumes.open(signal), runtime.open()]);
      runtime.restore();
      return 'opened';
    } catch (error) {
      if (signal.aborted) return 'aborted';
      throw error;
    }
  }

  async #sync(signal: AbortSignal): Promise<void> {
    const settled = this.runtime.images.resolveInterruptedPulls(signal);
    try {
      await this.control.loop.run(signal);
    } finally {
      await settled;
      await this.control.dispose();
    }
  }

  #loops(): BackgroundLoops {
    const { state, resources, volumes, runtime, control } = this;
    const [pods, node] = this.#clusterLoops;
    return {
      restartable: {
        ...pods?.restartable,
        ...node?.restartable,
        ...runtime.loops,
        ...control.loops,
        ...resources.loops,
        ...volumes.loops,
        ...state.loops,
      },
      critical: { ...pods?.critical, ...node?.critical, pleg: runtime.pleg },
    };
  }
}
