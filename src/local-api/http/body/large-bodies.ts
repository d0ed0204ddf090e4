/** What is shorter is read, checked and stored in one go. */
const shortBytes = 64 * 1024;

/** Lets the event loop take a turn between two steps of the work on a large body. */
export async function turnAfter({ length }: Uint8Array): Promise<void> {
  if (length > shortBytes) await new Promise<void>((resolve) => void setImmediate(resolve));
}
