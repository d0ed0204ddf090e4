/** Runs a test script that cleans up after a failure; a stop signal counts as a failure too. */
export async function runScript(work: (interrupted: Promise<never>) => Promise<void>): Promise<void> {
  const interrupted = new Promise<never>((_resolve, reject) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const)
      process.once(name, () => reject(new Error(`ended by ${name}; cleaning up`)));
  });
  interrupted.catch(() => {});
  try {
    await work(interrupted);
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
}
