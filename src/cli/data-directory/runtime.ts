import { networkName, openPrivateContainerd, type PrivateContainerd } from '../../containerd/index.ts';
import type { CriClient } from '../../cri/index.ts';
import { type CriObserver, createCriClient, wireTransport } from '../../cri/index.ts';
import { describeError } from '../../lib/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { CommandContext } from '../command.ts';
import type { DataDirectory } from './data-directory.ts';

/** Which home a sandbox or a container belongs to. */
export const dataDirectoryLabel = 'kubeling.dev/home';
/** Where that home is, for people. */
export const dataDirAnnotation = 'kubeling.dev/data-dir';

type Labels = Readonly<Record<string, string>>;

/** The same directory always gives the same name: one that was removed and made again knows the pods it had. */
export function dataDirectoryName({ dataDir }: Pick<DataDirectory, 'dataDir'>): string {
  return networkName(dataDir);
}

/** Below it, and nowhere else, a home's pods have their cgroups, whatever runtime they run on. */
export function dataDirectoryCgroup(home: Pick<DataDirectory, 'dataDir'>): string {
  return `/${dataDirectoryName(home)}`;
}

export interface OwnPodsOptions {
  readonly home: Pick<DataDirectory, 'dataDir'>;
  /** Pods without the name of a home: ours in a containerd of our own, in any other one those of somebody else's kubelet. */
  readonly unnamed: 'ours' | 'of-others';
}

/**
 * The runtime as one home sees it. What is made bears the home's name, and what others made is not there: nobody who
 * looks for pods that nobody wants can come upon theirs. Only lists are narrowed down, as ids are learnt from lists.
 */
export function onlyOwnPods(cri: CriClient, { home, unnamed }: OwnPodsOptions): CriClient {
  const name = dataDirectoryName(home);
  const isOurs = ({ labels = {} }: { readonly labels?: Labels | undefined } = {}) => {
    const { [dataDirectoryLabel]: owner } = labels;
    return owner === undefined ? unnamed === 'ours' : owner === name;
  };
  const named = (labels: MessageInit<Labels> | undefined) => ({ ...labels, [dataDirectoryLabel]: name });
  return {
    ...cri,
    runPodSandbox: ({ config, ...request }, signal) => {
      const annotations = { ...config?.annotations, [dataDirAnnotation]: home.dataDir };
      const ours = { ...config, labels: named(config?.labels), annotations };
      return cri.runPodSandbox({ ...request, config: ours }, signal);
    },
    createContainer: ({ config, ...request }, signal) =>
      cri.createContainer({ ...request, config: { ...config, labels: named(config?.labels) } }, signal),
    listPodSandbox: async (request, signal) => {
      const answer = await cri.listPodSandbox(request, signal);
      return { ...answer, items: answer.items.filter(isOurs) };
    },
    listContainers: async (request, signal) => {
      const answer = await cri.listContainers(request, signal);
      return { ...answer, containers: answer.containers.filter(isOurs) };
    },
    listContainerStats: async (request, signal) => {
      const answer = await cri.listContainerStats(request, signal);
      return { ...answer, stats: answer.stats.filter(({ attributes }) => isOurs(attributes)) };
    },
  };
}

/** Who else has pods in the runtime: the data directories of other homes, and how many pods have no home. */
export interface OtherPods {
  readonly homes: readonly string[];
  readonly unnamed: number;
}

export async function findOtherPods(
  cri: Pick<CriClient, 'listPodSandbox'>,
  home: Pick<DataDirectory, 'dataDir'>,
  signal: AbortSignal,
): Promise<OtherPods> {
  const { items } = await cri.listPodSandbox({}, signal);
  const others = items.filter(({ labels }) => labels[dataDirectoryLabel] !== dataDirectoryName(home));
  const [named, unnamed] = [
    others.filter(({ labels }) => labels[dataDirectoryLabel] !== undefined),
    others.filter(({ labels }) => labels[dataDirectoryLabel] === undefined),
  ];
  const homes = new Set(
    named.map(
      ({ labels, annotations }) => annotations[dataDirAnnotation] ?? labels[dataDirectoryLabel] ?? '',
    ),
  );
  return { homes: [...homes].sort(), unnamed: unnamed.length };
}

/** The containerd that belongs to this home, running or not. */
export async function privateContainerd(
  home: DataDirectory,
  context: CommandContext,
): Promise<PrivateContainerd> {
  const { clock, random, env } = context;
  return await openPrivateContainerd({ dataDir: home.dataDir, clock, random, env, cgroupDriver: 'cgroupfs' });
}

export function connectRuntime(
  endpoint: string,
  { clock, random }: CommandContext,
  observer: CriObserver = { called() {} },
): CriClient {
  return createCriClient({ transport: wireTransport({ endpoint, clock, random }), clock, observer });
}

export interface RuntimeWatcherDeps {
  readonly say: (text: string) => void;
  /** Starts the runtime again; undefined for one that is not ours. Never called while an earlier call is under way. */
  readonly restart: (() => Promise<unknown>) | undefined;
}

/** Tells once when the runtime goes away and once when it is back; one of our own is started again until it is. */
export class RuntimeWatcher {
  readonly #deps: RuntimeWatcherDeps;
  #state: 'there' | 'away' = 'there';
  #restart: 'idle' | 'under-way' | 'failed' = 'idle';

  constructor(deps: RuntimeWatcherDeps) {
    this.#deps = deps;
  }

  /** The runtime was asked how it is: what went wrong, or undefined. */
  observed(error: unknown): void {
    const state = error === undefined ? 'there' : 'away';
    if (state !== this.#state)
      this.#deps.say(state === 'there' ? 'answers again' : `does not answer: ${describeError(error)}`);
    this.#state = state;
    if (state === 'away') this.#restartRuntime();
    else if (this.#restart === 'failed') this.#restart = 'idle';
  }

  /** What kept it from starting may pass, so it is tried at every look; only the first failure is told. */
  #restartRuntime(): void {
    const { restart, say } = this.#deps;
    if (restart === undefined || this.#restart === 'under-way') return;
    const told = this.#restart === 'failed';
    this.#restart = 'under-way';
    restart().then(
      () => {
        this.#restart = 'idle';
      },
      (cause) => {
        if (!told) say(`cannot be started again, which is tried until it can: ${describeError(cause)}`);
        this.#restart = 'failed';
      },
    );
  }
}
