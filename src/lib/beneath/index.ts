export { chmodSocket, type HeldDirectory, holdDirectory } from './held-directory.ts';
export { type CallTime, mountIdOf, openPlace, placeFlags, wayFlags } from './places.ts';
export { isMountPoint, removeTree, type TreeCalls, unlessGone, unlessMissing } from './remove-tree.ts';
