import type { Pod } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import type { WalkNews } from './group-news.ts';
import { isGivenTo } from './group-owner.ts';

export interface GiveToGroupDeps {
  readonly files: VolumeFiles;
  /** Told while the files of a volume are given to the group of a pod; nobody is unless given. */
  readonly groupNews?: ((pod: Pod, volume: string) => WalkNews & Disposable) | undefined;
  /** Does the walk, and tells how long it took. */
  readonly timed?: ((work: () => Promise<void>) => Promise<void>) | undefined;
}

/** Gives all files of a volume to the group, unless the pod wants that only where they are not its yet, and they are. */
export async function giveToGroup(
  { files, groupNews, timed = (work) => work() }: GiveToGroupDeps,
  pod: Pod,
  { name, directory }: { readonly name: string; readonly directory: string },
  group: number,
): Promise<void> {
  const isOnce = pod.spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
  if (isOnce && isGivenTo(group, await files.ownerOf(directory))) return;
  using news = groupNews?.(pod, name);
  await timed(() => files.giveToGroup(directory, group, 'write', news));
}
