// Options whose text must be a number: said wrongly, the command ends with exit code 2 before it does anything.

import { InvalidArgumentError, Option } from "commander";

export const wholeNumberOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 1.");
    return Number(text);
  });
