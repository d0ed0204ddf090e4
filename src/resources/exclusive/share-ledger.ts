import type { Logger } from '../../lib/index.ts';
import { initContainersOf, type Pod, type PodUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/runtime-placement.ts';
import type { Restored, Shares } from './restore-shares.ts';
import { type StateFile, StateKeeper } from './state-keeper.ts';

export interface ShareLedgerDeps {
  readonly logger: Logger;
  readonly file: StateFile;
  /** Pods that use, or will use, anything of the node; undefined before all sources have told theirs. */
  readonly activePods: () => readonly Pod[] | undefined;
  /** Whether something of a pod may run that is not among them. */
  readonly mayRun: (uid: PodUid) => boolean;
  readonly fromRuntime: (signal: AbortSignal) => Promise<readonly RuntimePlacement[]>;
}

export interface ShareLedgerKind<State> {
  /** Whose it is, in what is logged. */
  readonly of: string;
  readonly initialState: State;
  readonly encode: (state: State) => string;
  readonly restore: (
    text: string | undefined,
    fromRuntime: () => Promise<readonly RuntimePlacement[]>,
  ) => Promise<Restored<State>>;
  readonly without: (state: State, uid: PodUid, container: string) => State;
  /** Told of each state from the one that was found on the disk. */
  readonly changed?: (state: State) => void;
}

/** Who has what for himself: noted on the disk, gone on from by the next kubelet, given back by who is no more. */
export class ShareLedger<State extends Shares<unknown>> {
  readonly #deps: ShareLedgerDeps;
  readonly #kind: ShareLedgerKind<State>;
  readonly #keeper: StateKeeper;
  #state: State;

  constructor(deps: ShareLedgerDeps, kind: ShareLedgerKind<State>) {
    this.#deps = deps;
    this.#kind = kind;
    this.#state = kind.initialState;
    this.#keeper = new StateKeeper(deps.file, deps.logger, () => kind.encode(this.#state));
  }

  get state(): State {
    return this.#state;
  }

  /** Goes on from what an earlier kubelet has noted. */
  async open(signal: AbortSignal): Promise<void> {
    const { file, logger, fromRuntime } = this.#deps;
    const { state, mended } = await this.#kind.restore(await file.read(), () => fromRuntime(signal));
    if (mended !== undefined) {
      const kept = [...state.assignments.keys()];
      logger.warn(`The checkpoint of the ${this.#kind.of} is not good as it is: mended`, {
        why: mended,
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
    this.#kind.changed?.(state);
  }
}

function namesIn(pod: Pod): ReadonlySet<string> {
  return new Set([...initContainersOf(pod), ...pod.spec.containers].map(({ name }) => name));
}
