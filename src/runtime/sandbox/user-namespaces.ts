import { posix } from 'node:path';
import type { UserNamespace } from '../../cri/index.ts';
import { describeError, KubelingError, type Logger } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import type { RuntimeFiles } from '../containers/runtime-files.ts';
import type { HandlerFeatures } from './runtime-classes.ts';

/** The smallest block, and what all blocks are a multiple of: what a pod expects to find of users. */
export const idsPerBlock = 65_536;
const endOfIds = 2 ** 32;
/** As the Go kubelet names it, so that either takes over from the other. */
const fileName = 'userns';
const fileMode = 0o600;
const longestFile = 4_096;

export interface UserNamespacesDeps {
  readonly files: Pick<RuntimeFiles, 'names' | 'readEnd' | 'replace' | 'remove'>;
  readonly logger: Logger;
  /** Pods have their files below it, each in a directory named by its uid. */
  readonly podsDir: string;
  readonly idsPerPod: number;
  /** Of which blocks are given; all but the machine's own unless told. */
  readonly ids?: { readonly first: number; readonly length: number } | undefined;
}

/** Users and groups of the machine that stand for those of one pod, of which the first is its root. */
interface IdBlock {
  readonly first: number;
  readonly length: number;
}

/**
 * The users of pods that do not share those of the machine. No two pods have one in common, and none has one of the
 * machine's own. A pod keeps its block over restarts of the kubelet: files it has written belong to it.
 */
export class UserNamespaces {
  readonly #deps: UserNamespacesDeps;
  readonly #blocks = new Map<PodUid, IdBlock>();
  /** Whose file says nothing usable; they get no other block, as files may belong to the one they had. */
  readonly #broken = new Map<PodUid, string>();

  constructor(deps: UserNamespacesDeps) {
    this.#deps = deps;
  }

  /** How many pods have users of their own. */
  get size(): number {
    return this.#blocks.size + this.#broken.size;
  }

  /** Reads what earlier kubelets have given away; to be called before anything is asked for. */
  async restore(): Promise<void> {
    const { files, podsDir } = this.#deps;
    for (const uid of (await files.names(podsDir)).filter(mayBePodUid)) await this.#restoreBlock(uid);
  }

  /** Those the pod has, or from now on has. Rejects with SANDBOX_CONFIG when it can have none. */
  async of(uid: PodUid): Promise<MessageInit<UserNamespace>> {
    const problem = this.#broken.get(uid);
    if (problem !== undefined) throw failed(`user namespace: ${problem}`);
    const known = this.#blocks.get(uid);
    return asMessage(known ?? (await this.#allocateBlock(uid)));
  }

  /** To be called once nothing of the pod runs any more; fine when it has none. */
  async release(uid: PodUid): Promise<void> {
    if (!this.#forget(uid)) return;
    await this.#deps.files.remove(this.#file(uid));
  }

  /** Forgets those of pods that have gone with their directory. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#blocks.keys(), ...this.#broken.keys()]) if (!isKept(uid)) this.#forget(uid);
  }

  async #allocateBlock(uid: PodUid): Promise<IdBlock> {
    const block = this.#findFreeBlock();
    // Taken before it is written, so that nobody else is given it meanwhile.
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

  /** The lowest that touches nobody's; never the first, which is the machine's own users. */
  #findFreeBlock(): IdBlock {
    const { idsPerPod: length, ids = { first: length, length: endOfIds - length } } = this.#deps;
    const taken = [...this.#blocks.values()].toSorted((one, other) => one.first - other.first);
    let { first } = ids;
    for (const block of taken) {
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
        throw new Error(`ids from ${block.first} on belong to another pod`);
      this.#blocks.set(uid, block);
    } catch (error) {
      const because = describeError(error);
      this.#broken.set(uid, because);
      logger.warn('Cannot tell which users a pod has', { podUid: uid, because });
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

/** Throws what is wrong with the file. */
function readBlock(text: string): IdBlock {
  const read: Partial<ReturnType<typeof asFile>> = JSON.parse(text);
  const [uids, more] = read.uidMappings ?? [];
  const [gids, others] = read.gidMappings ?? [];
  if (uids === undefined || gids === undefined || more !== undefined || others !== undefined)
    throw new Error('there must be one mapping of users and one of groups');
  const { hostId, containerId, length } = uids;
  if (gids.hostId !== hostId || gids.containerId !== containerId || gids.length !== length)
    throw new Error('users and groups must be mapped alike');
  if (containerId !== 0) throw new Error(`root must be mapped: the first id is ${containerId}`);
  const isWhole = [hostId, length].every((id) => Number.isInteger(id) && id > 0 && id % idsPerBlock === 0);
  if (!isWhole || hostId + length > endOfIds)
    throw new Error(`ids must come in whole blocks of ${idsPerBlock}: ${length} from ${hostId} on`);
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
  /** Those the runtime tells of, by name; none for a runtime that does not tell. */
  readonly handlers: () => ReadonlyMap<string, HandlerFeatures>;
  readonly namespaces: { of(uid: PodUid): Promise<MessageInit<UserNamespace>> };
}

/**
 * Whose users the pod has: the machine's, unless it asks for its own. Throws SANDBOX_CONFIG when it cannot have them:
 * an old runtime ignores the wish, and the pod would be root of the machine where it asked not to be.
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
  const more = known.size > 0 && !known.has(handler) ? `: the handler "${handler}" is not known` : '';
  throw new KubelingError(
    'SANDBOX_CONFIG',
    `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces${more}`,
  );
}
