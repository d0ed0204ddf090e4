import type { Logger } from '../../lib/index.ts';
import { describeError } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';

export interface StateCheckpointDeps {
  readonly logger: Logger;
  readonly file: StateFile;
  /** Pods that use, or will use, anything of the node; undefined before all sources have told theirs. */
  readonly activePods: () => readonly Pod[] | undefined;
  /** Whether something of a pod may run that is not among them. */
  readonly mayRun: (uid: PodUid) => boolean;
  readonly fromRuntime: (signal: AbortSignal) => Promise<readonly RuntimePlacement[]>;
}

export interface StateCheckpointOptions<State> {
  /** Whose it is, in what is logged. */
  readonly owner: string;
  readonly initialState: State;
  readonly encode: (state: State) => string;
  readonly restore: (
    text: string | undefined,
    fromRuntime: () => Promise<readonly RuntimePlacement[]>,
  ) => Promise<Restored<State>>;
  readonly without: (state: State, uid: PodUid, container: string) => State;
  /** Told of each state from the one that was found on the disk. */
  readonly onChange?: (state: State) => void;
}

/** Who has what for himself: noted on the disk, gone on from by the next kubelet, given back by who is no more. */
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

  /** Goes on from what an earlier kubelet has noted. */
  async open(signal: AbortSignal): Promise<void> {
    const { file, logger, fromRuntime } = this.#deps;
    const { state, problem } = await this.#kind.restore(await file.read(), () => fromRuntime(signal));
    if (problem !== undefined) {
      const kept = [...state.assignments.keys()];
      logger.warn(`The checkpoint of the ${this.#kind.owner} is not good as it is: mended`, {
        why: problem,
        kept,
      });
    }
    this.#set(state);
    await this.save();
  }

  /** It is on the disk once `save` has settled. */
  put(state: State): void {
    if (state === this.#state) return;
    this.#set(state);
    void this.save();
  }

  /** Settles when what the state is now is on the disk. */
  async save(): Promise<void> {
    await this.#keeper.save();
  }

  /** The state, once those who are inactive and containers that their pods no longer have gave back what they had. */
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

/** The file a manager keeps its state in. */
export interface StateFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  /** As a whole or not at all. */
  write(text: string): Promise<void>;
}

/** Keeps the file as new as the state: one write at a time, and of several states that wait only the newest. */
export class CheckpointWriter {
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

  /** Settles when what the state is now is on the disk. What cannot be written is told and tried again the next time. */
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
      this.#logger.error('Cannot note what containers were given for themselves', error);
    }
  }
}

/** What each container has for itself, by the UID of its pod and its name. */
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
  /** Why the checkpoint was not good as it was. */
  readonly problem?: string;
}

export interface RestoreOptions<State, Share> {
  readonly policyName: string;
  readonly initialState: State;
  /** Throws an error that says what is wrong with it. */
  readonly decode: (text: string) => { readonly policyName: string; readonly state: State };
  /** Whether it tells anything of the machine: a policy that gives nothing out notes nothing. */
  readonly isInitialized: (state: State) => boolean;
  /** Why it cannot be true on this machine now. */
  readonly problemOf: (state: State) => string | undefined;
  /** What a container that the runtime has must have been given; undefined when it shares. */
  readonly shareOf: (placement: RuntimePlacement) => Share | undefined;
  /** The state with what is claimed; as it was where that cannot be. */
  readonly assign: (state: State, claim: Assignment<Share>) => State;
}

/**
 * What an earlier kubelet has assigned. A checkpoint that is none, of another policy or of another machine is no reason
 * not to start: where nothing is assigned it is begun anew, else what the runtime has tells who has what. Of what was
 * noted, or else is seen, as much is kept as can be true on this machine now.
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

/** As far as it can be relied on, which is all or only what containers are said to have. */
function tryRead<Share, State extends Assignments<Share>>(
  text: string,
  { decode, policyName: wanted, isInitialized, problemOf }: RestoreOptions<State, Share>,
): { readonly state: State } | { readonly why: string; readonly noted?: readonly Assignment<Share>[] } {
  try {
    const { policyName, state } = decode(text);
    const noted = [...state.assignments].flatMap(([uid, own]) =>
      [...own].map(([container, share]) => ({ uid, container, share })),
    );
    if (policyName !== wanted)
      return { why: `it was written under the policy ${policyName}`, ...(noted.length === 0 && { noted }) };
    const why = isInitialized(state) || noted.length > 0 ? problemOf(state) : undefined;
    return why === undefined ? { state } : { why, noted };
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
