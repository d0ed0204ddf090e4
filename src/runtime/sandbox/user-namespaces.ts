import { posix } from 'node:path';
import type { UserNamespace } from '../../cri/index.ts';
import { describeError, KubelingError, type Logger } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { RuntimeFiles } from '../containers/runtime-files.ts';
import type { HandlerFeatures } from './runtime-classes.ts';

/** Minimum size of a pod's id range; also the alignment of all ranges. */
export const idsPerBlock = 65_536;
const endOfIds = 2 ** 32;
/** File name used by the Go kubelet too, so that either kubelet restores the other's id ranges. */
const fileName = 'userns';
const fileMode = 0o600;
const longestFile = 4_096;

export interface UserNamespacesDeps {
  readonly files: Pick<RuntimeFiles, 'names' | 'readEnd' | 'replace' | 'remove'>;
  readonly logger: Logger;
  /** Parent directory of the pod directories, which are named by UID. */
  readonly podsDir: string;
  readonly idsPerPod: number;
  /** Host ids from which ranges are allocated; by default all except the first 65,536. */
  readonly ids?: { readonly first: number; readonly length: number } | undefined;
  readonly foreignIds?: ForeignIds | undefined;
}

/**
 * Reads the id ranges assigned to users of the machine. They may change, so they are read for each
 * allocation.
 */
export type ForeignIds = () => Promise<readonly { readonly first: number; readonly length: number }[]>;

/** The host ids that a pod's ids are mapped to, starting with the pod's root. */
interface IdBlock {
  readonly first: number;
  readonly length: number;
}

/**
 * Allocates host id ranges to pods with user namespaces. The ranges do not overlap and exclude the
 * ids of the host and its users. A pod keeps its range over kubelet restarts, because its files
 * belong to these ids.
 */
export class UserNamespaces {
  readonly #deps: UserNamespacesDeps;
  readonly #blocks = new Map<PodUid, IdBlock>();
  /**
   * Pods whose user namespace file is invalid; they get no new range, because their files may
   * belong to the previous range.
   */
  readonly #broken = new Map<PodUid, string>();

  constructor(deps: UserNamespacesDeps) {
    this.#deps = deps;
  }

  /** Number of pods with a user namespace. */
  get size(): number {
    return this.#blocks.size + this.#broken.size;
  }

  /** Restores the id ranges allocated by previous kubelets; called before any allocation. */
  async restore(): Promise<void> {
    const { files, podsDir } = this.#deps;
    for (const uid of (await files.names(podsDir)).filter(mayBePodUid)) await this.#restoreBlock(uid);
  }

  /**
   * The pod's id range, allocated on the first call. Rejects with SANDBOX_CONFIG when none is
   * available.
   */
  async of(uid: PodUid): Promise<MessageInit<UserNamespace>> {
    const problem = this.#broken.get(uid);
    if (problem !== undefined) throw failed(`user namespace: ${problem}`);
    const known = this.#blocks.get(uid);
    return asMessage(known ?? (await this.#allocateBlock(uid)));
  }

  /** Releases the pod's id range, if it has one; called when no container of the pod runs. */
  async release(uid: PodUid): Promise<void> {
    if (!this.#forget(uid)) return;
    await this.#deps.files.remove(this.#file(uid));
  }

  /** Releases the id ranges of pods whose directory was removed. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#blocks.keys(), ...this.#broken.keys()]) if (!isKept(uid)) this.#forget(uid);
  }

  async #allocateBlock(uid: PodUid): Promise<IdBlock> {
    const foreign = (await this.#deps.foreignIds?.()) ?? [];
    // A concurrent call for this pod may already have allocated its range.
    const known = this.#blocks.get(uid);
    if (known !== undefined) return known;
    const block = this.#findFreeBlock(foreign);
    // The range is reserved before its file is written, so that a concurrent call gets another
    // range.
    this.#blocks.set(uid, block);
    try {
      const text = JSON.stringify(asFile(block));
      await this.#deps.files.replace(this.#file(uid), text, { mode: fileMode });
    } catch (error) {
      this.#blocks.delete(uid);
      throw failed(`create user namespace: ${describeError(error)}`);
    }
    return block;
  }

  /** The lowest free id range; never the first one, which contains the host's own ids. */
  #findFreeBlock(foreign: readonly IdBlock[]): IdBlock {
    const { idsPerPod: length, ids = { first: length, length: endOfIds - length } } = this.#deps;
    const used = [...this.#blocks.values(), ...foreign].toSorted((one, other) => one.first - other.first);
    let { first } = ids;
    for (const block of used) {
      if (overlap({ first, length }, block))
        first = Math.ceil((block.first + block.length) / length) * length;
    }
    if (first + length <= ids.first + ids.length) return { first, length };
    throw failed('create user namespace: could not find an empty slot to allocate a user namespace');
  }

  async #restoreBlock(uid: PodUid): Promise<void> {
    const { files, logger } = this.#deps;
    try {
      const bytes = await files.readEnd(this.#file(uid), longestFile);
      if (bytes === undefined || bytes.length === 0) return;
      const block = readBlock(bytes.toString('utf8'));
      if ([...this.#blocks.values()].some((other) => overlap(block, other)))
        throw new Error(`ids from ${block.first} on overlap with another pod`);
      this.#blocks.set(uid, block);
    } catch (error) {
      const because = describeError(error);
      this.#broken.set(uid, because);
      logger.warn('Failed to restore user namespace', { podUid: uid, because });
    }
  }

  #forget(uid: PodUid): boolean {
    return [this.#blocks.delete(uid), this.#broken.delete(uid)].includes(true);
  }

  #file(uid: PodUid): string {
    return posix.join(this.#deps.podsDir, uid, fileName);
  }
}

function overlap(one: IdBlock, other: IdBlock): boolean {
  return one.first < other.first + other.length && other.first < one.first + one.length;
}

interface FileMapping {
  readonly hostId: number;
  readonly containerId: number;
  readonly length: number;
}

function asFile({ first, length }: IdBlock) {
  const mapping: FileMapping = { hostId: first, containerId: 0, length };
  return { uidMappings: [mapping], gidMappings: [mapping] };
}

/** Parses a user namespace file; throws when it is invalid. */
function readBlock(text: string): IdBlock {
  const read: Partial<ReturnType<typeof asFile>> = JSON.parse(text);
  const [uids, more] = read.uidMappings ?? [];
  const [gids, others] = read.gidMappings ?? [];
  if (uids === undefined || gids === undefined || more !== undefined || others !== undefined)
    throw new Error('there must be one mapping of user ids and one of group ids');
  const { hostId, containerId, length } = uids;
  if (gids.hostId !== hostId || gids.containerId !== containerId || gids.length !== length)
    throw new Error('user and group mappings must be equal');
  if (containerId !== 0) throw new Error(`root must be mapped: the first id is ${containerId}`);
  const isWhole = [hostId, length].every((id) => Number.isInteger(id) && id > 0 && id % idsPerBlock === 0);
  if (!isWhole || hostId + length > endOfIds)
    throw new Error(
      `the range of ids must start at a multiple of ${idsPerBlock} and have a multiple of it as length: ${length} ids from ${hostId} on`,
    );
  return { first: hostId, length };
}

function asMessage({ first: hostId, length }: IdBlock): MessageInit<UserNamespace> {
  const mapping = { hostId, containerId: 0, length };
  return { mode: 'POD', uids: [mapping], gids: [mapping] };
}

function failed(message: string): KubelingError {
  return new KubelingError('SANDBOX_CONFIG', message);
}

export interface PodUsersDeps {
  /** Features of the runtime's handlers, by handler name; empty when the runtime reports none. */
  readonly handlers: () => ReadonlyMap<string, HandlerFeatures>;
  readonly namespaces: { of(uid: PodUid): Promise<MessageInit<UserNamespace>> };
}

/**
 * The pod's user namespace; the host's unless hostUsers is false. Throws SANDBOX_CONFIG when the
 * handler does not support user namespaces: an old runtime would ignore the setting and run the pod
 * as the host's root.
 */
export async function podUsers(
  { spec, metadata }: Pod,
  handler: string,
  { handlers, namespaces }: PodUsersDeps,
): Promise<MessageInit<UserNamespace>> {
  if (spec.hostUsers !== false) return { mode: 'NODE' };
  const known = handlers();
  if (known.get(handler)?.userNamespaces === true) return await namespaces.of(metadata.uid);
  const who = handler === '' ? 'runtime' : `RuntimeClass handler "${handler}"`;
  const more =
    known.size > 0 && !known.has(handler) ? `: the runtime does not report the handler "${handler}"` : '';
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces${more}`,
  );
}
