/** What the group of a volume may do with its root; new files are the group's, too. */
const groupsRoot = 0o2770;

/** Whether the root of a volume says that all of it was given to the group: it is given last. */
export function isGivenTo(
  wanted: number,
  { group, mode }: { readonly group: number; readonly mode: number },
): boolean {
  return group === wanted && (mode & groupsRoot) === groupsRoot;
}
