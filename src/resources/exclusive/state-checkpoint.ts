import type { Logger } from '../../lib/index.ts';
import { describeError } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';

export interface StateCheckpointDeps {
  readonly logger: Logger;
  readonly file: StateFile;
  /**
   * Returns the pods that use or will use resources of the node; undefined until all pod sources
   * are ready.
   */
  readonly activePods: () => readonly Pod[] | undefined;
  /** Whether containers of a pod that is no longer active may still run. */
  readonly mayRun: (uid: PodUid) => boolean;
  readonly fromRuntime: (signal: AbortSignal) => Promise<readonly RuntimePlacement[]>;
}

export interface StateCheckpointOptions<State> {
  /** The name of the resource manager in log messages. */
  readonly owner: string;
  readonly initialState: State;
  readonly encode: (state: State) => string;
  readonly restore: (
    text: string | undefined,
    fromRuntime: () => Promise<readonly RuntimePlacement[]>,
  ) => Promise<Restored<State>>;
  readonly without: (state: State, uid: PodUid, container: string) => State;
  /** Called with each new state, but not with the state restored from the checkpoint. */
  readonly onChange?: (state: State) => void;
}

/**
 * The persisted state of a resource manager. The next kubelet restores it; the resources of
 * inactive pods are released.
 */
export class StateCheckpoint<State extends Assignments<unknown>> {
  readonly #deps: StateCheckpointDeps;
  readonly #kind: StateCheckpointOptions<State>;
  readonly #keeper: CheckpointWriter;
  #state: State;

  constructor(deps: StateCheckpointDeps, kind: StateCheckpointOptions<State>) {
    this.#deps = deps;
    this.#kind = kind;
    this.#state = kind.initialState;
    this.#keeper = new CheckpointWriter(deps.file, deps.logger, () => kind.encode(this.#state));
  }

  get state(): State {
    return this.#state;
  }

  /** Restores the persisted state of a previous kubelet. */
  async open(signal: AbortSignal): Promise<void> {
    const { file, logger, fromRuntime } = this.#deps;
    const { state, problem } = await this.#kind.restore(await file.read(), () => fromRuntime(signal));
    if (problem !== undefined) {
      const kept = [...state.assignments.keys()];
      logger.warn(`Repaired checkpoint of the ${this.#kind.owner}`, {
        why: problem,
        kept,
      });
    }
    this.#set(state);
    await this.save();
  }

  /** Sets the state, which is persisted once `save` resolves. */
  put(state: State): void {
    if (state === this.#state) return;
    this.#set(state);
    void this.save();
  }

  /** Resolves when the current state is written to the checkpoint. */
  async save(): Promise<void> {
    await this.#keeper.save();
  }

  /**
   * Releases the resources of inactive pods and removed containers; returns the resulting state.
   */
  current(): State {
    const active = this.#deps.activePods();
    if (active !== undefined) this.put(this.#withoutStale(active));
    return this.#state;
  }

  #withoutStale(active: readonly Pod[]): State {
    const names = new Map(active.map((pod) => [pod.metadata.uid, namesIn(pod)]));
    const isKept = (uid: PodUid, container: string) =>
      names.get(uid)?.has(container) ?? this.#deps.mayRun(uid);
    let state = this.#state;
    for (const [uid, own] of state.assignments)
      for (const container of own.keys())
        if (!isKept(uid, container)) state = this.#kind.without(state, uid, container);
    return state;
  }

  #set(state: State): void {
    this.#state = state;
    this.#kind.onChange?.(state);
  }
}

function namesIn(pod: Pod): ReadonlySet<string> {
  return new Set([...initContainersOf(pod), ...pod.spec.containers].map(({ name }) => name));
}

/** The checkpoint file of a resource manager. */
export interface StateFile {
  /** Reads the checkpoint file; undefined if it does not exist. */
  read(): Promise<string | undefined>;
  /** Replaces the checkpoint file atomically. */
  write(text: string): Promise<void>;
}

/** Writes a checkpoint: one write at a time, always with the newest state. */
class CheckpointWriter {
  readonly #file: StateFile;
  readonly #logger: Logger;
  readonly #textOf: () => string;
  #writing: Promise<void> | undefined;
  #written: string | undefined;

  constructor(file: StateFile, logger: Logger, textOf: () => string) {
    this.#file = file;
    this.#logger = logger;
    this.#textOf = textOf;
  }

  /**
   * Resolves when the current state is written. A failed write is logged and retried by the next
   * call.
   */
  async save(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const text = this.#textOf();
    if (text === this.#written) return;
    this.#writing = this.#write(text).finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #write(text: string): Promise<void> {
    try {
      await this.#file.write(text);
      this.#written = text;
    } catch (error) {
      this.#logger.error('Failed to write resource checkpoint', error);
    }
  }
}

/** The exclusive resources (`Share`) of each container, by pod UID and container name. */
export interface Assignments<Share> {
  readonly assignments: ReadonlyMap<PodUid, ReadonlyMap<string, Share>>;
}

export interface Assignment<Share> {
  readonly uid: PodUid;
  readonly container: string;
  readonly share: Share;
}

export interface Restored<State> {
  readonly state: State;
  /** Why the checkpoint could not be used without changes; undefined if it was used unchanged. */
  readonly problem?: string;
}

export interface RestoreOptions<State, Share> {
  readonly policyName: string;
  readonly initialState: State;
  /** Decodes the checkpoint; throws an error that describes the damage. */
  readonly decode: (text: string) => { readonly policyName: string; readonly state: State };
  /** Whether a static policy has initialized the state; other policies write an empty state. */
  readonly isInitialized: (state: State) => boolean;
  /** Returns why the state does not match this machine; undefined if it does. */
  readonly problemOf: (state: State) => string | undefined;
  /** Derives the exclusive resources of a container from the runtime; undefined if it has none. */
  readonly shareOf: (placement: RuntimePlacement) => Share | undefined;
  /**
   * Returns the state with the assignment added, or the unchanged state if the resources are not
   * available.
   */
  readonly assign: (state: State, claim: Assignment<Share>) => State;
}

/**
 * Restores the assignments of a previous kubelet. A valid checkpoint is used as it is; without a
 * checkpoint or without assignments in it, the initial state is used. If the checkpoint does not
 * match this machine, its assignments are used for containers that the runtime has; if it is
 * damaged or of another policy, the assignments are derived from the runtime. Assignments that the
 * machine cannot satisfy are dropped.
 */
export async function restoreState<Share, State extends Assignments<Share>>(
  text: string | undefined,
  how: RestoreOptions<State, Share>,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<State>> {
  const { initialState } = how;
  if (text === undefined) return { state: initialState };
  const read = tryRead(text, how);
  if ('state' in read) return { state: how.isInitialized(read.state) ? read.state : initialState };
  const { why: problem, noted } = read;
  if (noted?.length === 0) return { state: initialState, problem };
  const seen = await fromRuntime();
  const there = new Set(seen.map(({ uid }) => uid));
  const restored = (noted ?? assignmentsIn(seen, how)).filter(({ uid }) => there.has(uid));
  return { state: restored.reduce(how.assign, initialState), problem };
}

/**
 * Returns the state of the checkpoint if it is valid, otherwise the reason and the assignments that
 * can still be read.
 */
function tryRead<Share, State extends Assignments<Share>>(
  text: string,
  { decode, policyName: expected, isInitialized, problemOf }: RestoreOptions<State, Share>,
): { readonly state: State } | { readonly why: string; readonly noted?: readonly Assignment<Share>[] } {
  try {
    const { policyName, state } = decode(text);
    const recorded = [...state.assignments].flatMap(([uid, own]) =>
      [...own].map(([container, share]) => ({ uid, container, share })),
    );
    if (policyName !== expected)
      return {
        why: `it was written under the policy ${policyName}`,
        ...(recorded.length === 0 && { noted: recorded }),
      };
    const why = isInitialized(state) || recorded.length > 0 ? problemOf(state) : undefined;
    return why === undefined ? { state } : { why, noted: recorded };
  } catch (error) {
    return { why: describeError(error) };
  }
}

function assignmentsIn<Share>(
  seen: readonly RuntimePlacement[],
  { shareOf }: Pick<RestoreOptions<never, Share>, 'shareOf'>,
): readonly Assignment<Share>[] {
  return seen.flatMap((placement) => {
    const share = shareOf(placement);
    const { uid, container } = placement;
    return share === undefined ? [] : [{ uid, container, share }];
  });
}
