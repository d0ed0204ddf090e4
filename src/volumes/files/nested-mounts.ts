import { posix } from 'node:path';
import type { Container } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { containersOf } from '../manager/volume-users.ts';
import { cleanPath, unusable } from '../projected/payload.ts';

/**
 * The directories a volume must have because containers mount other volumes there, relative to it and sorted: in a
 * volume that is read-only nobody could make them later. Of those in one another only the outermost.
 */
export function nestedMountPoints(pod: Pod, volume: string): readonly string[] {
  const found = containersOf(pod).flatMap((container) => nestedIn(container, volume));
  return [...new Set(found)].sort();
}

function nestedIn({ volumeMounts = [] }: Container, volume: string): readonly string[] {
  const points = volumeMounts.map(({ mountPath }) => cleanPath(mountPath));
  const own = volumeMounts.filter(({ name }) => name === volume).map(({ mountPath }) => cleanPath(mountPath));
  return own.flatMap((base) => {
    if (base === '..' || base.startsWith('../')) throw unusable(`invalid container mount point ${base}`);
    const inside = points.filter((point) => isBelow(point, base));
    const outermost = inside.filter((point) => !inside.some((other) => isBelow(point, other)));
    return outermost.map((point) => posix.relative(base, point));
  });
}

function isBelow(path: string, base: string): boolean {
  return path !== base && path.startsWith(base === '/' ? '/' : `${base}/`);
}
