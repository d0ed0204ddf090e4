import { describeError } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/runtime-placement.ts';

/** What each container has for itself, by the UID of its pod and its name. */
export interface Shares<Share> {
  readonly assignments: ReadonlyMap<PodUid, ReadonlyMap<string, Share>>;
}

export interface Claim<Share> {
  readonly uid: PodUid;
  readonly container: string;
  readonly share: Share;
}

export interface Restored<State> {
  readonly state: State;
  /** Why the checkpoint was not good as it was. */
  readonly mended?: string;
}

export interface Restoring<State, Share> {
  readonly policyName: string;
  readonly initialState: State;
  /** Throws an error that says what is wrong with it. */
  readonly decode: (text: string) => { readonly policyName: string; readonly state: State };
  /** Whether it tells anything of the machine: a policy that gives nothing out notes nothing. */
  readonly isBegun: (state: State) => boolean;
  /** Why it cannot be true on this machine now. */
  readonly problemOf: (state: State) => string | undefined;
  /** What a container that the runtime has must have been given; undefined when it shares. */
  readonly seenIn: (placement: RuntimePlacement) => Share | undefined;
  /** The state with what is claimed; as it was where that cannot be. */
  readonly grant: (state: State, claim: Claim<Share>) => State;
}

/**
 * What an earlier kubelet has assigned. A checkpoint that is none, of another policy or of another machine is no reason
 * not to start: where nothing is assigned it is begun anew, else what the runtime has tells who has what. Of what was
 * noted, or else is seen, as much is kept as can be true on this machine now.
 */
export async function restoreShares<Share, State extends Shares<Share>>(
  text: string | undefined,
  how: Restoring<State, Share>,
  fromRuntime: () => Promise<readonly RuntimePlacement[]>,
): Promise<Restored<State>> {
  const { initialState } = how;
  if (text === undefined) return { state: initialState };
  const read = tryRead(text, how);
  if ('state' in read) return { state: how.isBegun(read.state) ? read.state : initialState };
  const { why: mended, noted } = read;
  if (noted?.length === 0) return { state: initialState, mended };
  const seen = await fromRuntime();
  const there = new Set(seen.map(({ uid }) => uid));
  const claims = (noted ?? claimsOf(seen, how)).filter(({ uid }) => there.has(uid));
  return { state: claims.reduce(how.grant, initialState), mended };
}

/** As far as it can be relied on, which is all or only what containers are said to have. */
function tryRead<Share, State extends Shares<Share>>(
  text: string,
  { decode, policyName: wanted, isBegun, problemOf }: Restoring<State, Share>,
): { readonly state: State } | { readonly why: string; readonly noted?: readonly Claim<Share>[] } {
  try {
    const { policyName, state } = decode(text);
    const noted = [...state.assignments].flatMap(([uid, own]) =>
      [...own].map(([container, share]) => ({ uid, container, share })),
    );
    if (policyName !== wanted)
      return { why: `it was written under the policy ${policyName}`, ...(noted.length === 0 && { noted }) };
    const why = isBegun(state) || noted.length > 0 ? problemOf(state) : undefined;
    return why === undefined ? { state } : { why, noted };
  } catch (error) {
    return { why: describeError(error) };
  }
}

function claimsOf<Share>(
  seen: readonly RuntimePlacement[],
  { seenIn }: Pick<Restoring<never, Share>, 'seenIn'>,
): readonly Claim<Share>[] {
  return seen.flatMap((placement) => {
    const share = seenIn(placement);
    const { uid, container } = placement;
    return share === undefined ? [] : [{ uid, container, share }];
  });
}
