/** The first numbers of a version, as [6, 1] of "6.1.0-13-amd64"; undefined when there are none. */
export function versionNumbers(text: string): readonly [number, number] | undefined {
  const found = /(\d{1,9})\.(\d{1,9})/.exec(text);
  return found === null ? undefined : [Number(found[1]), Number(found[2])];
}

export function isAtLeast(text: string, [major, minor]: readonly [number, number]): boolean {
  const found = versionNumbers(text);
  if (found === undefined) return false;
  return found[0] > major || (found[0] === major && found[1] >= minor);
}
