/** More would only wait for each other's mounts and files. */
const atOnce = 8;

/** The answers in the order of the items, of which only some are worked on at a time. */
export async function inTurns<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const answers: R[] = [];
  const queue = [...items.entries()];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, item] = next;
      answers[index] = await act(item);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, work));
  // Not before all have ended: whoever comes next must not meet one that is still at it.
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return answers;
}
