import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface RecreatedTree {
  /** The directory tree that the tested operation removes; it contains the path `at`. */
  readonly tree: string;
  /** The path in the tree that is swapped with the link. */
  readonly at: string;
  readonly link: string;
  /** The target of the link. */
  readonly target: string;
}

let number = 0;

/**
 * Recreates a removed tree and its link; does nothing while the tree exists. The tree is built
 * elsewhere and then renamed, so that the link cannot lead the test itself out of the tree.
 */
export function recreateTree({ tree, at, link, target }: RecreatedTree): void {
  if (existsSync(tree)) return;
  rmSync(link, { recursive: true, force: true });
  symlinkSync(target, link);
  const stage = `${link}.stage${number++}`;
  mkdirSync(join(stage, 'inner'), { recursive: true });
  for (let file = 0; file < 20; file++) writeFileSync(join(stage, `${file}.log`), 'own\n');
  mkdirSync(dirname(at), { recursive: true });
  renameSync(stage, at);
}
